// The headers that most of ONNX Runtime's own sources begin with; see docs/explanation/how-it-works.md.
// Upstream's op_kernel_type_control.h is left out: what it says depends on the operator configuration.
#if __has_include("core/framework/session_state.h")
#include "core/framework/op_kernel.h"
#include "core/framework/session_state.h"
#include "core/framework/utils.h"
#include "core/graph/graph_viewer.h"
#include "core/providers/common.h"
#endif
