
#include <sstream>
#include <stdexcept>
static std::map<int, std::string> table = {{1, "first"}, {ORDER, NAME}};
static std::string found() {
  try { return table.at(ORDER); } catch (const std::out_of_range &) { return "missing"; }
}
extern "C" __attribute__((visibility("default"))) const char *CALL(void) {
  static std::string answer;
  Message message;
  ++calls();
  std::ostringstream text;
  text << message.name() << ' ' << Message::count << ' ' << calls() << ' ' << plain_c() << ' ' << found();
  answer = text.str();
  return answer.c_str();
}
