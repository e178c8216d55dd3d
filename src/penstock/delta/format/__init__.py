"""What the protocol of Delta defines: actions, features, properties, schemas, values, statistics, deletion vectors."""
