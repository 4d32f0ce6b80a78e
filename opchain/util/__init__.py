"""Utilities of PyFlink. PyFlink: pyflink.util."""
