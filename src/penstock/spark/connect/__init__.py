"""What takes the place of Spark's JVM on a Spark Connect session, which a client reaches by DataFrame calls alone."""
