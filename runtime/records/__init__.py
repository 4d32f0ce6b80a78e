"""Records on their way: stream elements, copies, pickles, columns, and the wire format of buffers."""
