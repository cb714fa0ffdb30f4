// Which instructions Apple's ARM processors have beyond the first. ONNX Runtime asks the library cpuinfo, which is no part
// of such a build, and detects nothing without; so its questions are answered here, as Apple says to ask the system:
// https://developer.apple.com/documentation/kernel/1387446-sysctlbyname/determining_instruction_set_characteristics
#include "core/common/cpuid_info.h"  // before the definition below, with which the class would have a member more

#include <sys/sysctl.h>

#define CPUINFO_SUPPORTED

namespace onnxruntime {

static bool pytorch_cpuinfo_init_;  // that member

}  // namespace onnxruntime

namespace {

int system_value(const char *name) {
  int value = 0;
  size_t size = sizeof value;
  return sysctlbyname(name, &value, &size, nullptr, 0) == 0 ? value : 0;
}

bool cpuinfo_initialize() { return true; }
[[maybe_unused]] void cpuinfo_deinitialize() {}
unsigned cpuinfo_get_uarchs_count() { return static_cast<unsigned>(system_value("hw.nperflevels")); }
bool cpuinfo_has_arm_neon_dot() { return system_value("hw.optional.arm.FEAT_DotProd") != 0; }
bool cpuinfo_has_arm_neon_fp16_arith() { return system_value("hw.optional.arm.FEAT_FP16") != 0; }
bool cpuinfo_has_arm_i8mm() { return system_value("hw.optional.arm.FEAT_I8MM") != 0; }
bool cpuinfo_has_arm_neon_bf16() { return system_value("hw.optional.arm.FEAT_BF16") != 0; }
bool cpuinfo_has_arm_sve() { return false; }  // no processor of Apple's has it outside of its streaming mode
[[maybe_unused]] bool cpuinfo_has_arm_sme() { return system_value("hw.optional.arm.FEAT_SME") != 0; }
[[maybe_unused]] bool cpuinfo_has_arm_sme2() { return system_value("hw.optional.arm.FEAT_SME2") != 0; }

}  // namespace
