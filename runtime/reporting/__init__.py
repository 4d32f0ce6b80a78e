"""Reports jobs to other systems: Prometheus, OpenTelemetry, OpenLineage."""
