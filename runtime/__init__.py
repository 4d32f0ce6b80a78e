"""Runs a compiled job: what users subclass, and what executors load. Never imports the compiler."""

if __name__ != "opchain.runtime":
    raise ImportError(
        "this folder is the package opchain.runtime: run 'pip install -e .' and import it by that name"
    )
