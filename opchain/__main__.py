"""`python -m opchain`: the command line."""

if __name__ == "__main__":
    from opchain.compiler.cli import main

    main(prog_name="python -m opchain")
