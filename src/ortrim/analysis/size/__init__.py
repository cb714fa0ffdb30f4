"""Where the bytes of a library are, and what tells two libraries apart."""
