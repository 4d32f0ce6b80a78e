"""The commands of `opchain`. A module lists its own in `COMMANDS`; compiler/cli.py finds them."""
