"""Files: file systems, listing, ranges of files, decompression and publishing."""
