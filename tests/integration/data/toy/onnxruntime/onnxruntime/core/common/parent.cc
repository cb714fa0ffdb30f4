int parent(int value) { return value * 2; }
