"""The window operators, and the contents and evaluation of windows."""
