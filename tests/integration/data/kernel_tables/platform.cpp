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
