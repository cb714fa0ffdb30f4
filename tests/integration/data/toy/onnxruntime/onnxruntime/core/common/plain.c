#ifdef ORTRIM_PRECOMPILED
#error "a header of C++ is of no use to C"
#endif
int plain(int value) { return value - 3; }
