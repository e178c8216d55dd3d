"""Lakes that have a name: what `penstock.toml` and the environment say of them."""
