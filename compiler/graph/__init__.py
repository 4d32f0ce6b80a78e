"""The nouns: transformation, stream graph, job graph, execution plan."""
