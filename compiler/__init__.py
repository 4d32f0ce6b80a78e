"""From a user program to a plan: DSL, StreamGraph, passes, JobGraph, generated source. Runs offline."""

if __name__ != "opchain.compiler":
    raise ImportError(
        "this folder is the package opchain.compiler: run 'pip install -e .' and import it by that name"
    )
