#include "mlasi.h"
extern "C" int MlasFourBit(int x) { return GetMlasPlatform().FourBitRoutine(x); }
