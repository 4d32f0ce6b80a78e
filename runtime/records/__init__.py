"""Records in exchanges: stream elements, copies, pickles, columns, and the wire format of buffers."""
