"""The data structures of the compiler: transformation, stream graph, job graph and execution plan."""
