"""Size, memory and speed: the official wheel, upstream's recipe and ortrim's profiles, with real models."""
