#include "mlasi.h"
extern "C" int ExpKernel(int x) { return x + 50; }
extern "C" int MlasExp(int x) { return GetMlasPlatform().ExpRoutine(x); }
extern "C" int MlasOther(int x) { return ExpKernel(x) + 1; }
