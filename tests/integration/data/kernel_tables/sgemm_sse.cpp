#include "mlasi.h"
extern "C" int FloatKernelSse(int x) { return x + 10; }
