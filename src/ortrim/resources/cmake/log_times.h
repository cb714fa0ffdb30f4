// Writes a log line's time by the library date. Included ahead of the sources that do so: as C++20, upstream calls
// std::chrono's own operator, which formats by std::format, with tables for numbers of every length: 180 kB of a Mac's
// library for a line that few programs write. The text is the same.
#pragma once

#if __has_include("date/date.h")

#include <chrono>
#include <ostream>

#include "date/date.h"

namespace std {
namespace chrono {

// What is no template is preferred to the library's own where it fits as it is.
inline ostream& operator<<(ostream& out, const time_point<system_clock>& time) { return ::date::operator<<(out, time); }

}  // namespace chrono
}  // namespace std

#endif
