"""Tables for access to connectors: CREATE TABLE, scalar queries and INSERT INTO become DataStream programs."""
