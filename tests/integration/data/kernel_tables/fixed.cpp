#include "mlasi.h"
extern const Dispatch FixedDispatch;
extern "C" int MlasFixed(int x) { return FixedDispatch.run(x); }
