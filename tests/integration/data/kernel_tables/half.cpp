#include "mlasi.h"
extern "C" bool MlasHalfSupported() {
#if defined(__ELF__)
  return MLAS_CPUIDINFO::GetCPUIDInfo().HasHalf();
#else
  return false;
#endif
}
extern "C" int MlasHalf(int x) { return GetMlasPlatform().HalfEntry->run(x); }
