// Before upstream's header of this name, which it reads: what is logged is the same, and its place is written down apart.
// With ORTRIM_TERSE only warnings and errors are logged.
#pragma once

#include_next "core/common/logging/macros.h"

namespace onnxruntime {
namespace detail {

// In messages.cc.
ORTRIM_RARE logging::Capture CaptureAt(const char* file, int line, const char* function, const logging::Logger& logger,
                                       logging::Severity severity, const char* category, logging::DataType kind);

}  // namespace detail
}  // namespace onnxruntime

#undef CREATE_MESSAGE
#define CREATE_MESSAGE(logger, severity, category, datatype)                                             \
  ::onnxruntime::detail::CaptureAt(__FILE__, __LINE__, static_cast<const char*>(__FUNCTION__), logger,   \
                                   ::onnxruntime::logging::Severity::k##severity, category, datatype)

#ifdef ORTRIM_TERSE
#define ORTRIM_LOGGED(severity) (::onnxruntime::logging::Severity::k##severity >= ::onnxruntime::logging::Severity::kWARNING)

#undef LOGS_CATEGORY
#define LOGS_CATEGORY(logger, severity, category)                                                                     \
  if (!ORTRIM_LOGGED(severity) || !(logger).OutputIsEnabled(::onnxruntime::logging::Severity::k##severity,             \
                                                            ::onnxruntime::logging::DataType::SYSTEM)) {               \
  } else                                                                                                              \
    CREATE_MESSAGE(logger, severity, category, ::onnxruntime::logging::DataType::SYSTEM).Stream()
#endif
