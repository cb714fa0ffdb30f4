"""Sources in the manner of MLAS's: a table of kernels, a constructor that fills it, and sources that use entries."""

from typing import Final

SOURCES: Final = {
    "mlasi.h": """\
struct Dispatch { int (*run)(int); };
extern const Dispatch QuantDispatchDefault;
extern const Dispatch QuantDispatchAvx2;
extern const Dispatch FilledDispatch;
extern const Dispatch HalfDispatch;
extern "C" int FloatKernelSse(int);
extern "C" int FloatKernelAvx(int);
extern "C" int PoolKernel(int);
extern "C" int ExpKernel(int);
extern "C" int CastKernel(int);
extern "C" int FourBitKernel(int);
template <typename A, typename B> int Depthwise(const A*);
const Dispatch& ChosenDispatch(int);
struct MLAS_PLATFORM {
  MLAS_PLATFORM();
  int (*FloatRoutine)(int);
  const Dispatch* QuantEntry{&QuantDispatchDefault};
  int (*PoolRoutine[2])(int);
  int (*DepthwiseRoutine)(const signed char*);
  int (*ExpRoutine)(int);
  int (*CastRoutine)(int);
  int (*FourBitRoutine)(int);
  const Dispatch* ChosenEntry;
  const Dispatch* FilledEntry;
  const Dispatch* HalfEntry;
  static constexpr int BLOCK_OF_TWO = 2;
  int BlockSize;
};
inline MLAS_PLATFORM& GetMlasPlatform() { static MLAS_PLATFORM platform; return platform; }
int Processor();
class MLAS_CPUIDINFO {
 public:
  static const MLAS_CPUIDINFO& GetCPUIDInfo() { static MLAS_CPUIDINFO info; return info; }
  bool HasHalf() const { return half_; }
 private:
  MLAS_CPUIDINFO() : half_(Processor() == 2) {}
  bool half_;
};
""",
    "platform.cpp": """\
#include "mlasi.h"
MLAS_PLATFORM::MLAS_PLATFORM() {
  this->FloatRoutine = FloatKernelSse;
  this->PoolRoutine[0] = PoolKernel;
  this->PoolRoutine[1] = PoolKernel;
  this->DepthwiseRoutine = Depthwise<signed char, unsigned char>;
  this->ExpRoutine = &ExpKernel;
  this->CastRoutine = CastKernel;
  this->FourBitRoutine = FourBitKernel;
  this->ChosenEntry = &ChosenDispatch(Processor());
  this->FilledEntry = &FilledDispatch;
  this->HalfEntry = &HalfDispatch;
  this->BlockSize = 8;
  if (Processor() == 0) this->BlockSize = BLOCK_OF_TWO;
  // Check if the processor supports AVX2/FMA3 features.
  if (Processor() > 1) {
    this->FloatRoutine = FloatKernelAvx;
    this->QuantEntry = &QuantDispatchAvx2;
  }
}
int Processor() { static volatile int generation = 2; return generation; }
bool Same() { return GetMlasPlatform().QuantEntry == nullptr; }
int First() { return GetMlasPlatform().ExpRoutine(1); }
""",
    "qgemm.h": """\
#include "mlasi.h"
inline int Quant(int x) { return GetMlasPlatform().QuantEntry->run(x); }
""",
    "qgemm.cpp": '#include "qgemm.h"\nextern "C" int MlasQuant(int x) { return Quant(x); }\n',
    "qgemm_avx2.cpp": """\
#include "qgemm.h"
static int Run(int x) { return x > 3 ? Quant(x - 1) + 2 : x; }
const Dispatch QuantDispatchAvx2 = {Run};
const Dispatch QuantDispatchDefault = {Run};
""",
    "sgemm.cpp": """\
#include "mlasi.h"
extern "C" int MlasFloat(int x) { return GetMlasPlatform().FloatRoutine(x); }
""",
    "sgemm_sse.cpp": '#include "mlasi.h"\nextern "C" int FloatKernelSse(int x) { return x + 10; }\n',
    "sgemm_avx.cpp": '#include "mlasi.h"\nextern "C" int FloatKernelAvx(int x) { return x + 20; }\n',
    "snchwc.cpp": """\
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
""",
    "fixed_table.cpp": """\
#include "mlasi.h"
extern const Dispatch FixedDispatch;
const Dispatch FixedDispatch = {FloatKernelSse};
""",
    "fixed.cpp": """\
#include "mlasi.h"
extern const Dispatch FixedDispatch;
extern "C" int MlasFixed(int x) { return FixedDispatch.run(x); }
""",
    "route.cpp": """\
#include "mlasi.h"
extern "C" int MlasRoute(void) {
  if (FloatKernelAvx != GetMlasPlatform().FloatRoutine) return 0;
  return GetMlasPlatform().CastRoutine != nullptr && GetMlasPlatform().FloatRoutine == FloatKernelAvx;
}
""",
    "cast.cpp": """\
#include "mlasi.h"
extern "C" int MlasCast(int x) { return GetMlasPlatform().CastRoutine(x); }
""",
    "fourbit.cpp": """\
#include "mlasi.h"
extern "C" int MlasFourBit(int x) { return GetMlasPlatform().FourBitRoutine(x); }
""",
    "fourbit_avx2.cpp": """\
#include "mlasi.h"
extern "C" int CastKernel(int x) { return x + 60; }
extern "C" int FourBitKernel(int x) { return x + 70; }
""",
    "chosen.cpp": """\
#include "mlasi.h"
static int Choose(int x) { return x + 80; }
static const Dispatch Chosen = {Choose};
const Dispatch& ChosenDispatch(int) { return Chosen; }
extern "C" int MlasChosen(int x) { return GetMlasPlatform().ChosenEntry->run(x); }
""",
    "qdwconv.cpp": """\
#include "mlasi.h"
template <typename A, typename B> int Depthwise(const A* x) { return *x + 40; }
template int Depthwise<signed char, unsigned char>(const signed char*);
extern "C" int MlasDepthwise(const signed char* x) { return GetMlasPlatform().DepthwiseRoutine(x); }
""",
    "filled.cpp": """\
#include "mlasi.h"
extern "C" int MlasFilled(int x) { return GetMlasPlatform().FilledEntry->run(x); }
""",
    "half.cpp": """\
#include "mlasi.h"
extern "C" bool MlasHalfSupported() {
#if defined(__ELF__)
  return MLAS_CPUIDINFO::GetCPUIDInfo().HasHalf();
#else
  return false;
#endif
}
extern "C" int MlasHalf(int x) { return GetMlasPlatform().HalfEntry->run(x); }
""",
    "half_neon.cpp": """\
#include "mlasi.h"
static int RunHalf(int x) { return x + 100; }
extern const Dispatch HalfDispatch;
const Dispatch HalfDispatch = {RunHalf};
""",
    "filled_neon.cpp": """\
#include "mlasi.h"
static int RunSlow(int x) { return GetMlasPlatform().FilledEntry == nullptr ? x : x + 90; }
static int RunFast(int x) { return x + 91; }
extern const Dispatch FilledDispatch;
const Dispatch FilledDispatch = [] {
  Dispatch made;
  made.run = Processor() > 1 ? RunFast : RunSlow;
  return made;
}();
""",
    "compute.cpp": """\
#include "mlasi.h"
extern "C" int ExpKernel(int x) { return x + 50; }
extern "C" int MlasExp(int x) { return GetMlasPlatform().ExpRoutine(x); }
extern "C" int MlasOther(int x) { return ExpKernel(x) + 1; }
""",
}  # fmt: skip
