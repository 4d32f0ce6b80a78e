"""Tables as a front door to connectors: CREATE TABLE, scalar queries and INSERT INTO become DataStream programs."""
