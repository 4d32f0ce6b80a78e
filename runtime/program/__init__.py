"""The compiled job for executors: one VertexProgram per vertex, with the specs of its operators."""
