"""Assertions on plans for a user's own tests: no Spark, no JVM. `opchain.testing` re-exports them."""
