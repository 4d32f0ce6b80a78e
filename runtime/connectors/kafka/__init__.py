"""Sources and sinks for Kafka, with the names of Flink's connector and the client confluent-kafka."""
