int unused() { return 0; }
