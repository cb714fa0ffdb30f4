/* What XNNPACK asks pytorch's cpuinfo, answered by the processor itself or, on ARM, by the system: the same answers for
   all cores. Of what core it is nothing is known, so that kernels for single models of cores are compiled into nothing:
   those for any core take their place. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum cpuinfo_uarch {
  cpuinfo_uarch_unknown,
  cpuinfo_uarch_cortex_a5,
  cpuinfo_uarch_cortex_a7,
  cpuinfo_uarch_cortex_a32,
  cpuinfo_uarch_cortex_a35,
  cpuinfo_uarch_cortex_a53,
  cpuinfo_uarch_cortex_a55,
  cpuinfo_uarch_cortex_a55r0,
  cpuinfo_uarch_cortex_a57,
  cpuinfo_uarch_cortex_a72,
  cpuinfo_uarch_cortex_a73,
  cpuinfo_uarch_cortex_a75,
  cpuinfo_uarch_cortex_a76,
  cpuinfo_uarch_cortex_a77,
  cpuinfo_uarch_cortex_a78,
  cpuinfo_uarch_cortex_a510,
  cpuinfo_uarch_cortex_a710,
  cpuinfo_uarch_cortex_a715,
  cpuinfo_uarch_cortex_x1,
  cpuinfo_uarch_cortex_x2,
  cpuinfo_uarch_cortex_x3,
  cpuinfo_uarch_neoverse_n1,
  cpuinfo_uarch_neoverse_n2,
  cpuinfo_uarch_neoverse_v1,
  cpuinfo_uarch_neoverse_v2,
  cpuinfo_uarch_exynos_m1,
  cpuinfo_uarch_exynos_m2,
  cpuinfo_uarch_exynos_m3,
  cpuinfo_uarch_exynos_m4,
  cpuinfo_uarch_exynos_m5,
  cpuinfo_uarch_krait,
  cpuinfo_uarch_kryo,
  cpuinfo_uarch_zen,
  cpuinfo_uarch_zen4,
  cpuinfo_uarch_dhyana
};
struct cpuinfo_core {
  enum cpuinfo_uarch uarch;
};
struct cpuinfo_uarch_info {
  enum cpuinfo_uarch uarch;
};

static const struct cpuinfo_core ortrim_core = {cpuinfo_uarch_unknown};
static const struct cpuinfo_uarch_info ortrim_uarch = {cpuinfo_uarch_unknown};
#define cpuinfo_initialize() true
#define cpuinfo_get_core(index) (&ortrim_core)
#define cpuinfo_get_uarch(index) (&ortrim_uarch)

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

/* Bit `bit` of register `place` (0 for EAX, as they are numbered in CPUID's order a, b, c, d) of a leaf. */
static inline bool ortrim_bit(unsigned leaf, unsigned subleaf, int place, int bit) {
  unsigned registers[4] = {0, 0, 0, 0};
  return __get_cpuid_count(leaf, subleaf, &registers[0], &registers[1], &registers[2], &registers[3]) &&
         (registers[place] >> bit & 1);
}

/* Whether the system keeps registers of these kinds when it changes from one thread to another. */
static inline bool ortrim_keeps(unsigned kinds) {
  unsigned low, high;
  if (!ortrim_bit(1, 0, 2, 27)) return false;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kinds) == kinds;
}

#define ORTRIM_AVX(leaf, subleaf, place, bit) (ortrim_keeps(0x6) && ortrim_bit(leaf, subleaf, place, bit))
#define ORTRIM_AVX512(leaf, subleaf, place, bit) (ortrim_keeps(0xE6) && ortrim_bit(leaf, subleaf, place, bit))
#define cpuinfo_has_x86_sse2() ortrim_bit(1, 0, 3, 26)
#define cpuinfo_has_x86_ssse3() ortrim_bit(1, 0, 2, 9)
#define cpuinfo_has_x86_sse4_1() ortrim_bit(1, 0, 2, 19)
#define cpuinfo_has_x86_avx() ORTRIM_AVX(1, 0, 2, 28)
#define cpuinfo_has_x86_f16c() ORTRIM_AVX(1, 0, 2, 29)
#define cpuinfo_has_x86_fma3() ORTRIM_AVX(1, 0, 2, 12)
#define cpuinfo_has_x86_avx2() ORTRIM_AVX(7, 0, 1, 5)
#define cpuinfo_has_x86_avxvnni() ORTRIM_AVX(7, 1, 0, 4)
#define cpuinfo_has_x86_avx512f() ORTRIM_AVX512(7, 0, 1, 16)
#define cpuinfo_has_x86_avx512dq() ORTRIM_AVX512(7, 0, 1, 17)
#define cpuinfo_has_x86_avx512bw() ORTRIM_AVX512(7, 0, 1, 30)
#define cpuinfo_has_x86_avx512vl() ORTRIM_AVX512(7, 0, 1, 31)
#define cpuinfo_has_x86_avx512vnni() ORTRIM_AVX512(7, 0, 2, 11)
#elif defined(__aarch64__)
#if defined(__APPLE__) /* what all their processors have, and the compiler is told of this one's */
#define cpuinfo_has_arm_neon_dot() (__ARM_FEATURE_DOTPROD + 0)
#define cpuinfo_has_arm_fp16_arith() (__ARM_FEATURE_FP16_SCALAR_ARITHMETIC + 0)
#else
#include <sys/auxv.h>
#define cpuinfo_has_arm_neon_dot() (getauxval(AT_HWCAP) >> 20 & 1)
#define cpuinfo_has_arm_fp16_arith() (getauxval(AT_HWCAP) >> 9 & 1)
#endif
#define cpuinfo_has_arm_neon_fp16_arith() cpuinfo_has_arm_fp16_arith()
#define cpuinfo_has_arm_neon() true
#define cpuinfo_has_arm_neon_fma() true
#define cpuinfo_has_arm_neon_fp16() true
#define cpuinfo_has_arm_neon_v8() true
#define cpuinfo_has_arm_vfpv3() true
/* Kernels for these are not compiled. */
#define cpuinfo_has_arm_neon_bf16() false
#define cpuinfo_has_arm_i8mm() false
#define cpuinfo_has_arm_sve() false
#define cpuinfo_has_arm_sve2() false
#define cpuinfo_has_arm_sme() false
#define cpuinfo_has_arm_sme2() false
#endif
