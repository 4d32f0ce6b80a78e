"""The operators: the classes that run the specs of runtime/program/operator_specs.py."""
