int sparse() { return 0; }
