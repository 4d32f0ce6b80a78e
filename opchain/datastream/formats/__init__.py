"""Formats of records in files and messages. PyFlink: pyflink.datastream.formats."""
