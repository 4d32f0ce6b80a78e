"""The commands of `opchain`, one a file."""
