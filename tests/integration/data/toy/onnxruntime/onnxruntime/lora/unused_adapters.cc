int adapters() { return 0; }
