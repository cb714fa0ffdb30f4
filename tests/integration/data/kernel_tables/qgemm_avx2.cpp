#include "qgemm.h"
static int Run(int x) { return x > 3 ? Quant(x - 1) + 2 : x; }
const Dispatch QuantDispatchAvx2 = {Run};
const Dispatch QuantDispatchDefault = {Run};
