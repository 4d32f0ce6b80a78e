"""The passes of the compiler, one per file. `pipeline` lists them in order."""
