"""What flows through a job: rows, and the types that describe records."""
