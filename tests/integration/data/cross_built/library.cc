
#include <iostream>
#include <map>
#include <mutex>
#include <pthread.h>
#include <sstream>
#include <string>
#include <thread>
namespace { std::map<int, std::string> table = {{1, "one"}, {41, "forty-one"}}; thread_local int calls = 5; }
extern "C" int not_hidden_by_the_compiler(int n) { return n; }
extern "C" const void *OrtGetApiBase(void);
[[gnu::noinline]] static long address_of_caller() {
  return static_cast<const char *>(__builtin_return_address(0)) - reinterpret_cast<const char *>(&OrtGetApiBase);
}
[[gnu::noinline]] static long deep_inside() {
  const long address = address_of_caller();
  asm volatile("" : : "r"(address));  // called, not jumped to
  return address;
}
static const char *computed() {
  static std::mutex mutex;
  static std::string answer;
  std::lock_guard<std::mutex> lock(mutex);
  std::thread other([] { ++calls; });  // its own
  other.join();
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  for (int n = 0; n < 2; ++n) pthread_once(&once, [] { ++table.begin()->second[0]; });
  std::ostringstream text;
  text << table[1] << " " << table[41] << " " << 1.5 << " " << ++calls << " at " << deep_inside();
  std::cerr << text.str() << std::endl;
  answer = text.str();
  return answer.c_str();
}
static const void *no_api(unsigned) { return nullptr; }
static const struct { const void *(*api)(unsigned); const char *(*version)(); } base = {no_api, computed};
extern "C" __attribute__((visibility("default"))) const void *OrtGetApiBase(void) { return &base; }
