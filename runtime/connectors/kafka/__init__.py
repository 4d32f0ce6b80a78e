"""Kafka under the names of Flink's connector, on the library confluent-kafka."""
