"""The DSL: PyFlink's DataStream API, whose calls create transformations."""
