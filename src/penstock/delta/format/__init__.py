"""The parts of a Delta table by the protocol: actions, values, schema, features, properties, statistics."""
