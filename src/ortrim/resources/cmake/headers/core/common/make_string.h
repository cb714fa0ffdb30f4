// In place of upstream's header of this name: the same functions, whose callers only pass what a text is made of. Upstream's
// put a stream, and what cleans it up, into every function that may fail.
#pragma once

#include <locale>
#include <ostream>
#include <sstream>
#include <string>
#include <type_traits>

namespace onnxruntime {
namespace detail {

// A value of any other type than those that have a letter, and what prints it.
struct Printable {
  const void* value;
  void (*print)(std::ostream& out, const void* value);
};

template <typename T>
void Print(std::ostream& out, const void* value) {
  out << *reinterpret_cast<const std::remove_reference_t<T>*>(value);
}

template <typename T>
constexpr bool is_character = std::is_same_v<T, char> || std::is_same_v<T, signed char> || std::is_same_v<T, unsigned char> ||
                              std::is_same_v<T, wchar_t> || std::is_same_v<T, char16_t> || std::is_same_v<T, char32_t>;

// The letter that stands for a type in the list of types that precedes the values.
template <typename T>
constexpr char Letter() {
  using Plain = std::remove_cv_t<T>;
  using Element = std::remove_cv_t<std::remove_pointer_t<std::decay_t<Plain>>>;
  if constexpr ((std::is_array_v<Plain> || std::is_pointer_v<Plain>) && std::is_same_v<Element, char>) {
    return 't';
  } else if constexpr (std::is_integral_v<Plain> && !is_character<Plain>) {
    return std::is_signed_v<Plain> ? 'i' : 'u';
  } else if constexpr (std::is_same_v<Plain, float> || std::is_same_v<Plain, double>) {
    return 'd';
  } else if constexpr (std::is_same_v<Plain, std::string>) {
    return 's';
  } else {
    return 'p';
  }
}

template <char... letter>
constexpr char list[] = {letter..., 0};

template <typename... T>
constexpr const char* letters = list<Letter<T>()...>;

template <typename T>
inline auto Value(const T& value) {
  constexpr char letter = Letter<T>();
  if constexpr (letter == 't') {
    return static_cast<const char*>(value);
  } else if constexpr (letter == 'i') {
    return static_cast<long long>(value);
  } else if constexpr (letter == 'u') {
    return static_cast<unsigned long long>(value);
  } else if constexpr (letter == 'd') {
    return static_cast<double>(value);
  } else if constexpr (letter == 's') {
    return &value;
  } else {
    return Printable{reinterpret_cast<const void*>(&value), &Print<const T>};
  }
}

#define ORTRIM_RARE __attribute__((noinline, cold))

// The text of values, whose types `letters` lists: messages.cc.
ORTRIM_RARE std::string Join(const char* letters, ...);
ORTRIM_RARE std::string JoinWithClassicLocale(const char* letters, ...);

}  // namespace detail

inline std::string MakeString(const std::string& text) { return text; }
inline std::string MakeString(const char* text) { return text; }

template <typename... T>
inline std::string MakeString(const T&... values) {
  return detail::Join(detail::letters<T...>, detail::Value(values)...);
}

inline std::string MakeStringWithClassicLocale(const std::string& text) { return text; }
inline std::string MakeStringWithClassicLocale(const char* text) { return text; }

template <typename... T>
inline std::string MakeStringWithClassicLocale(const T&... values) {
  return detail::JoinWithClassicLocale(detail::letters<T...>, detail::Value(values)...);
}

}  // namespace onnxruntime
