"""The base classes of user functions, and the conversion of plain callables to functions."""
