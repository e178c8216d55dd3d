"""The checks of a lake's health, each in a module of its own: what it is given is `Examined`, what it says findings."""
