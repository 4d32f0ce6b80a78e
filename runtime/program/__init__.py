"""What the compiler hands to executors: one VertexProgram a vertex, with the specs of its operators."""
