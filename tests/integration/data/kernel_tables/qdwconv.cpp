#include "mlasi.h"
template <typename A, typename B> int Depthwise(const A* x) { return *x + 40; }
template int Depthwise<signed char, unsigned char>(const signed char*);
extern "C" int MlasDepthwise(const signed char* x) { return GetMlasPlatform().DepthwiseRoutine(x); }
