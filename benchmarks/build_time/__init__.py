"""Build times: upstream's own recipe beside ortrim's, and what a warm compiler cache and a kept build tree save."""
