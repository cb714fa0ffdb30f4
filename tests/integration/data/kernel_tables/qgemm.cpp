#include "qgemm.h"
extern "C" int MlasQuant(int x) { return Quant(x); }
