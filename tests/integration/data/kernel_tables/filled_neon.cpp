#include "mlasi.h"
static int RunSlow(int x) { return GetMlasPlatform().FilledEntry == nullptr ? x : x + 90; }
static int RunFast(int x) { return x + 91; }
extern const Dispatch FilledDispatch;
const Dispatch FilledDispatch = [] {
  Dispatch made;
  made.run = Processor() > 1 ? RunFast : RunSlow;
  return made;
}();
