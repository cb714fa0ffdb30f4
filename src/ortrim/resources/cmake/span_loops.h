// Lets loops over spans go by pointers. Included ahead of element_wise_ops.cc, whose Pow, Mod and others give the
// iterators of gsl::span to std::transform: each step of such an iterator checks its bounds, which clang cannot take out
// of the loop, and so it vectorizes none. These check a range once.
#pragma once

#if __has_include(<gsl/span>)

#include <algorithm>
#include <cstddef>
#include <gsl/span>

namespace std {

// What fits fewer types is preferred to the library's own.
template <class From, class To, class Function>
inline gsl::details::span_iterator<To> transform(gsl::details::span_iterator<From> first,
                                                 gsl::details::span_iterator<From> last,
                                                 gsl::details::span_iterator<To> out, Function function) {
  const ptrdiff_t count = last - first;
  if (count <= 0) return out;
  const auto end = out + count;
  From* from = &*first;
  To* to = &*out;
  for (ptrdiff_t each = 0; each < count; ++each) to[each] = function(from[each]);
  return end;
}

template <class From, class Other, class To, class Function>
inline gsl::details::span_iterator<To> transform(gsl::details::span_iterator<From> first,
                                                 gsl::details::span_iterator<From> last,
                                                 gsl::details::span_iterator<Other> other,
                                                 gsl::details::span_iterator<To> out, Function function) {
  const ptrdiff_t count = last - first;
  if (count <= 0) return out;
  const auto end = out + count;
  static_cast<void>(other + count);
  From* from = &*first;
  Other* also = &*other;
  To* to = &*out;
  for (ptrdiff_t each = 0; each < count; ++each) to[each] = function(from[each], also[each]);
  return end;
}

}  // namespace std

#endif
