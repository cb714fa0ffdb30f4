#include "mlasi.h"
inline int Quant(int x) { return GetMlasPlatform().QuantEntry->run(x); }
