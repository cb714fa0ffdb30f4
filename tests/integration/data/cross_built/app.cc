
#include <cstdio>
extern "C" const char *from_one(void);
extern "C" const char *from_two(void);
static char answer[200];
static const char *computed() {
  Message own;
  calls() += 7;
  std::string one = from_one(), two = from_two();
  const std::string name = own.name();
  std::snprintf(answer, sizeof answer, "%s, %s, %s %d %d", one.c_str(), two.c_str(), name.c_str(), calls(), plain_c());
  return answer;
}
static const void *no_api(unsigned) { return nullptr; }
static const struct { const void *(*api)(unsigned); const char *(*version)(); } base = {no_api, computed};
extern "C" __attribute__((visibility("default"))) const void *OrtGetApiBase(void) { return &base; }
