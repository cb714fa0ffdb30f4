#include "mlasi.h"
extern "C" int MlasRoute(void) {
  if (FloatKernelAvx != GetMlasPlatform().FloatRoutine) return 0;
  return GetMlasPlatform().CastRoutine != nullptr && GetMlasPlatform().FloatRoutine == FloatKernelAvx;
}
