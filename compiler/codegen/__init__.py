"""Code generation: compiles the operator chain of each vertex to the source of a Python function."""
