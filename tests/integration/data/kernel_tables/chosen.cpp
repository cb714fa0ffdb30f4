#include "mlasi.h"
static int Choose(int x) { return x + 80; }
static const Dispatch Chosen = {Choose};
const Dispatch& ChosenDispatch(int) { return Chosen; }
extern "C" int MlasChosen(int x) { return GetMlasPlatform().ChosenEntry->run(x); }
