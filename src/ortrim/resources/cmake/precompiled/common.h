// What most sources of onnxruntime_common begin with.
#if __has_include("core/common/logging/logging.h")
#include "core/common/common.h"
#include "core/common/logging/logging.h"
#include "core/platform/env.h"
#endif
