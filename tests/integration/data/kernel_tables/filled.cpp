#include "mlasi.h"
extern "C" int MlasFilled(int x) { return GetMlasPlatform().FilledEntry->run(x); }
