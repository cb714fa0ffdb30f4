#include "mlasi.h"
static int RunHalf(int x) { return x + 100; }
extern const Dispatch HalfDispatch;
const Dispatch HalfDispatch = {RunHalf};
