// Finds the largest of many bytes by vectors. Included ahead of qlinear_softmax.cc, which asks for it once for each row:
// libc++'s std::max_element keeps the place of the largest so far, which clang cannot vectorize, and takes an eighth of
// QLinearSoftmax's time (the official library's compiler vectorizes it). Where it is another C++ library, nothing changes.
#pragma once

#include <algorithm>
#include <cstdint>

#if defined(_LIBCPP_VERSION)

_LIBCPP_BEGIN_NAMESPACE_STD

template <class Byte>
inline const Byte* ortrim_largest_byte(const Byte* first, const Byte* last) {
  if (first == last) return last;
  Byte largest = *first;
  for (const Byte* each = first; each != last; ++each) largest = largest < *each ? *each : largest;
  return std::find(first, last, largest);
}

// What is no template is preferred to the library's own where it fits as it is.
inline const uint8_t* max_element(const uint8_t* first, const uint8_t* last) {
  return ortrim_largest_byte(first, last);
}

inline const int8_t* max_element(const int8_t* first, const int8_t* last) { return ortrim_largest_byte(first, last); }

_LIBCPP_END_NAMESPACE_STD

#endif
