#include "mlasi.h"
extern "C" int FloatKernelAvx(int x) { return x + 20; }
