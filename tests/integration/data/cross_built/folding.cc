
#include <sstream>
#include <string>
extern "C" void said_one(std::ostringstream &), said_two(std::ostringstream &);
extern "C" const int *tag_one(), *tag_two();
static const char *computed() {
  static std::string answer;
  std::ostringstream text;
  said_one(text);
  said_two(text);
  text << (tag_one() == tag_two() ? " one tag" : " two tags");
  answer = text.str();
  return answer.c_str();
}
static const void *no_api(unsigned) { return nullptr; }
static const struct { const void *(*api)(unsigned); const char *(*version)(); } base = {no_api, computed};
extern "C" __attribute__((visibility("default"))) const void *OrtGetApiBase(void) { return &base; }
