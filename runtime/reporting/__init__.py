"""Tells other systems of a job: Prometheus, OpenTelemetry, OpenLineage."""
