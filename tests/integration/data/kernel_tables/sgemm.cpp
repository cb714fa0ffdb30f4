#include "mlasi.h"
extern "C" int MlasFloat(int x) { return GetMlasPlatform().FloatRoutine(x); }
