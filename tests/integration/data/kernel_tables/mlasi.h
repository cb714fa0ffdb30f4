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
