#include "mlasi.h"
extern "C" int MlasBlockSize(
    void
    )
/* What the blocks have. */
{
#if defined(__ELF__)
  return GetMlasPlatform().BlockSize;
#else
  return 1;
#endif
}
extern "C" int MlasPool(int x) { return GetMlasPlatform().PoolRoutine[1](x); }
extern "C" int PoolKernel(int x) { return x + 30; }
