#include "mlasi.h"
extern "C" int CastKernel(int x) { return x + 60; }
extern "C" int FourBitKernel(int x) { return x + 70; }
