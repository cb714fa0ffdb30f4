// Before upstream's header of this name, which it reads: the same macros, whose users only pass what a message is made of.
// They come to the same sentences, with a function's name instead of its signature; with ORTRIM_TERSE to the place alone,
// `file.cc:123`.
#pragma once

#include_next "core/common/common.h"

#undef ORT_THROW
#undef ORT_NOT_IMPLEMENTED
#undef ORT_ENFORCE
#undef ORT_MAKE_STATUS
#undef ORT_RETURN_IF
#undef ORT_RETURN_IF_ERROR_SESSIONID
#undef ORT_THROW_IF_ERROR

namespace onnxruntime {
namespace detail {

#ifdef ORTRIM_TERSE

#ifndef __FILE_NAME__ // gcc before 12
#define __FILE_NAME__ __FILE__
#endif

[[noreturn]] ORTRIM_RARE void FailAt(const char* file, int line);
[[noreturn]] ORTRIM_RARE void FailNotImplementedAt(const char* file, int line);
// `place` is a line, above that a code, and above that a category.
ORTRIM_RARE common::Status MakeStatusAt(const char* file, int place);

#define ORTRIM_PLACE(category, code) \
  __FILE_NAME__, static_cast<int>(::onnxruntime::common::category) << 28 | static_cast<int>(::onnxruntime::common::code) << 20 | __LINE__

#define ORT_THROW(...) ::onnxruntime::detail::FailAt(__FILE_NAME__, __LINE__)
#define ORT_NOT_IMPLEMENTED(...) ::onnxruntime::detail::FailNotImplementedAt(__FILE_NAME__, __LINE__)
#define ORT_ENFORCE(condition, ...)                               \
  do {                                                            \
    if (!(condition)) {                                           \
      ::onnxruntime::detail::FailAt(__FILE_NAME__, __LINE__);     \
    }                                                             \
  } while (false)
#define ORT_MAKE_STATUS(category, code, ...) ::onnxruntime::detail::MakeStatusAt(ORTRIM_PLACE(category, code))
#define ORT_RETURN_IF(condition, ...)                                              \
  do {                                                                             \
    if (condition) {                                                               \
      return ::onnxruntime::detail::MakeStatusAt(ORTRIM_PLACE(ONNXRUNTIME, FAIL)); \
    }                                                                              \
  } while (false)

#else

// What follows a condition or a place are the values of the message, as in make_string.h.
[[noreturn]] ORTRIM_RARE void Fail(const char* file, int line, const char* function, const char* condition,
                                   const char* letters, ...);
[[noreturn]] ORTRIM_RARE void FailNotImplemented(const char* letters, ...);
ORTRIM_RARE common::Status MakeStatus(common::StatusCategory category, common::StatusCode code, const char* letters, ...);
ORTRIM_RARE common::Status MakeFailure(const char* file, int line, const char* function, const char* letters, ...);

template <typename... T>
[[noreturn]] inline void FailWith(const char* file, int line, const char* function, const char* condition, const T&... values) {
  Fail(file, line, function, condition, letters<T...>, Value(values)...);
}

template <typename... T>
[[noreturn]] inline void FailNotImplementedWith(const T&... values) {
  FailNotImplemented(letters<T...>, Value(values)...);
}

template <typename... T>
inline common::Status MakeStatusWith(common::StatusCategory category, common::StatusCode code, const T&... values) {
  return MakeStatus(category, code, letters<T...>, Value(values)...);
}

template <typename... T>
inline common::Status MakeFailureWith(const char* file, int line, const char* function, const T&... values) {
  return MakeFailure(file, line, function, letters<T...>, Value(values)...);
}

#define ORT_THROW(...) ::onnxruntime::detail::FailWith(__FILE__, __LINE__, static_cast<const char*>(__FUNCTION__), nullptr, ##__VA_ARGS__)
#define ORT_NOT_IMPLEMENTED(...) ::onnxruntime::detail::FailNotImplementedWith(__VA_ARGS__)
#define ORT_ENFORCE(condition, ...)                                                                         \
  do {                                                                                                      \
    if (!(condition)) {                                                                                     \
      ::onnxruntime::detail::FailWith(__FILE__, __LINE__, static_cast<const char*>(__FUNCTION__), #condition, ##__VA_ARGS__);  \
    }                                                                                                       \
  } while (false)
#define ORT_MAKE_STATUS(category, code, ...) \
  ::onnxruntime::detail::MakeStatusWith(::onnxruntime::common::category, ::onnxruntime::common::code, ##__VA_ARGS__)
#define ORT_RETURN_IF(condition, ...)                                                                           \
  do {                                                                                                          \
    if (condition) {                                                                                            \
      return ::onnxruntime::detail::MakeFailureWith(__FILE__, __LINE__, static_cast<const char*>(__FUNCTION__), \
                                                    ##__VA_ARGS__);                                             \
    }                                                                                                           \
  } while (false)

#endif

}  // namespace detail
}  // namespace onnxruntime

// Upstream tells its telemetry of the error first, which outside Windows does nothing.
#define ORT_RETURN_IF_ERROR_SESSIONID(expr, session_id) \
  do {                                                  \
    auto _status = (expr);                              \
    if ((!_status.IsOK())) {                            \
      return _status;                                   \
    }                                                   \
  } while (0)
#define ORT_THROW_IF_ERROR(expr) \
  do {                           \
    auto _status = (expr);       \
    if ((!_status.IsOK())) {     \
      ORT_THROW(_status);        \
    }                            \
  } while (0)
