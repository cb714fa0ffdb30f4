int optional() { return 0; }
