"""Device farms: Firebase Test Lab, AWS Device Farm."""
