"""The classes that users subclass for their functions, and plain callables in their place."""
