// What the macros in headers/core/common come to, each once for the whole library.
#include <cstdarg>
#include <cstdlib>

#include "core/common/common.h"
#include "core/common/logging/logging.h"

namespace onnxruntime {
namespace detail {
namespace {

void write(std::ostream& out, const char* letters, va_list values) {
  for (; *letters != 0; ++letters) {
    switch (*letters) {
      case 't':
        out << va_arg(values, const char*);
        break;
      case 'i':
        out << va_arg(values, long long);
        break;
      case 'u':
        out << va_arg(values, unsigned long long);
        break;
      case 'd':
        out << va_arg(values, double);
        break;
      case 's':
        out << *va_arg(values, const std::string*);
        break;
      default: {
        const Printable other = va_arg(values, Printable);
        other.print(out, other.value);
      }
    }
  }
}

std::string text_of(const char* letters, va_list values) {
  std::ostringstream out;
  write(out, letters, values);
  return out.str();
}

}  // namespace

#define ORTRIM_TEXT(text)                      \
  va_list values;                              \
  va_start(values, letters);                   \
  std::string text = text_of(letters, values); \
  va_end(values)

std::string Join(const char* letters, ...) {
  ORTRIM_TEXT(text);
  return text;
}

std::string JoinWithClassicLocale(const char* letters, ...) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  va_list values;
  va_start(values, letters);
  write(out, letters, values);
  va_end(values);
  return out.str();
}

#ifdef ORTRIM_TERSE

void FailAt(const char* file, int line) {
#ifdef ORT_NO_EXCEPTIONS
  PrintFinalMessage(MakeString(file, ":", line, "\n").c_str());
  std::abort();
#else
  throw OnnxRuntimeException(CodeLocation(file, line, ""), "");
#endif
}

void FailNotImplementedAt(const char* file, int line) {
#ifdef ORT_NO_EXCEPTIONS
  FailAt(file, line);
#else
  throw NotImplementedException(MakeString(file, ":", line));
#endif
}

common::Status MakeStatusAt(const char* file, int place) {
  return common::Status(static_cast<common::StatusCategory>(place >> 28), static_cast<common::StatusCode>(place >> 20 & 0xFF),
                        MakeString(file, ":", place & 0xFFFFF));
}

#else

void Fail(const char* file, int line, const char* function, const char* condition, const char* letters, ...) {
  ORTRIM_TEXT(text);
  const CodeLocation place(file, line, function, GetStackTrace());
#ifdef ORT_NO_EXCEPTIONS
  PrintFinalMessage(OnnxRuntimeException(place, condition, text).what());
  std::abort();
#else
  throw OnnxRuntimeException(place, condition, text);
#endif
}

void FailNotImplemented(const char* letters, ...) {
  ORTRIM_TEXT(text);
#ifdef ORT_NO_EXCEPTIONS
  PrintFinalMessage(NotImplementedException(text).what());
  std::abort();
#else
  throw NotImplementedException(text);
#endif
}

common::Status MakeStatus(common::StatusCategory category, common::StatusCode code, const char* letters, ...) {
  ORTRIM_TEXT(text);
  return common::Status(category, code, text);
}

common::Status MakeFailure(const char* file, int line, const char* function, const char* letters, ...) {
  ORTRIM_TEXT(text);
  return common::Status(common::ONNXRUNTIME, common::FAIL, CodeLocation(file, line, function).ToString() + " " + text);
}

#endif

logging::Capture CaptureAt(const char* file, int line, const char* function, const logging::Logger& logger,
                           logging::Severity severity, const char* category, logging::DataType kind) {
  return logging::Capture(logger, severity, category, kind, CodeLocation(file, line, function));
}

}  // namespace detail
}  // namespace onnxruntime
