"""The door from tables to streams: a described table as the source of a DataStream program.

No SQL and no relational operators: tables exist here as far as a program needs them to make a stream.
"""
