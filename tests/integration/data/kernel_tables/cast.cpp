#include "mlasi.h"
extern "C" int MlasCast(int x) { return GetMlasPlatform().CastRoutine(x); }
