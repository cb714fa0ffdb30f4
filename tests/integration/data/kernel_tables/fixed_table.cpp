#include "mlasi.h"
extern const Dispatch FixedDispatch;
const Dispatch FixedDispatch = {FloatKernelSse};
