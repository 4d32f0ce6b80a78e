"""Helpers of PyFlink. PyFlink: pyflink.util."""
