/* A stand-in for libc++_shared.so: a library that another one needs, and that no system has. */
int beside(void) { return 1; }
