"""Files: where they lie, how they are found, cut, unpacked and published."""
