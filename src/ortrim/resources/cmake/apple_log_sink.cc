// Stands in for upstream's apple_log_sink.mm where Apple's Foundation is not there, which is on every host but a Mac.
// The same line of text goes to standard error, as NSLog's does, without NSLog's own date and without the system's log.
#include "core/platform/apple/logging/apple_log_sink.h"

#include <iostream>
#include <sstream>

namespace onnxruntime {
namespace logging {

void AppleLogSink::SendImpl(const Timestamp& timestamp, const std::string& logger_id, const Capture& message) {
  std::ostringstream line;
  timestamp_ns::operator<<(line, timestamp);
  line << " [" << message.SeverityPrefix() << ":" << message.Category() << ":" << logger_id << ", "
       << message.Location().ToString() << "] " << message.Message() << "\n";
  std::cerr << line.str() << std::flush;
}

}  // namespace logging
}  // namespace onnxruntime
