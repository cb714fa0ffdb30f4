/* Where the symbols of kernels lead that nothing in the library reaches: to bytes without code, an address for each. */
__attribute__((visibility("hidden"))) extern const char ortrim_unreached[256];
const char ortrim_unreached[256] = {0};
