"""The DSL: PyFlink's DataStream API, leaving transformations behind and nothing else."""
