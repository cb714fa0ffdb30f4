extern "C" int MlasThreads(int x) { return x * 3 + 1; }
extern "C" int MlasWorkers(int x) { return x * 3 + 1; }
static const char* const kText = "a text that is a string literal";
extern "C" const char* OrtText() { return kText; }
int table[64] = {1, 2, 3};
int zeros[100];
