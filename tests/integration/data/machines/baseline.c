/* One instruction of each extension that the compiler takes for granted for a processor; it ends with 0 when all are
 * there. Compiled without a C library. */
#if defined(__aarch64__)
__asm__(".text\n.global _start\n_start:\n mov x29, #0\n bl probe\n mov x8, #93\n mov x0, #0\n svc #0\n");
#elif defined(__arm__)
__asm__(".text\n.arm\n.global _start\n_start:\n bl probe\n mov r7, #1\n mov r0, #0\n svc #0\n");
#else
__asm__(".text\n.global _start\n_start:\n call probe\n li a7, 93\n li a0, 0\n ecall\n");
#endif
static long long word[2];
void probe(void) {
#if defined(__aarch64__)
#ifdef __ARM_FEATURE_CRC32
  __asm__ volatile("crc32w w0, w0, w0" ::: "x0");
#endif
#ifdef __ARM_FEATURE_ATOMICS
  __asm__ volatile("ldadd x0, x0, [%0]" :: "r"(word) : "x0", "memory");
#endif
#ifdef __ARM_FEATURE_QRDMX
  __asm__ volatile("sqrdmlah v0.4s, v0.4s, v0.4s" ::: "v0");
#endif
#ifdef __ARM_FEATURE_FP16_VECTOR_ARITHMETIC
  __asm__ volatile("fadd v0.8h, v0.8h, v0.8h" ::: "v0");
#endif
#ifdef __ARM_FEATURE_DOTPROD
  __asm__ volatile("sdot v0.4s, v0.16b, v0.16b" ::: "v0");
#endif
#ifdef __ARM_FEATURE_RCPC
  __asm__ volatile("ldapr x0, [%0]" :: "r"(word) : "x0");
#endif
#ifdef __ARM_FEATURE_JCVT
  __asm__ volatile("fjcvtzs w0, d0" ::: "x0");
#endif
#ifdef __ARM_FEATURE_AES
  __asm__ volatile("aese v0.16b, v0.16b" ::: "v0");
#endif
#elif defined(__arm__)
#ifdef __ARM_FEATURE_IDIV
  __asm__ volatile("sdiv r0, r0, r0" ::: "r0");
#endif
#ifdef __ARM_FEATURE_CRC32
  __asm__ volatile("crc32w r0, r0, r0" ::: "r0");
#endif
#if __ARM_FEATURE_LDREX & 8
  __asm__ volatile("ldrexd r0, r1, [%0]" :: "r"(word) : "r0", "r1");
#endif
#if defined(__ARM_FEATURE_FMA)
  __asm__ volatile("vfma.f32 s0, s0, s0" ::: "s0");
#endif
#if __ARM_FP & 2
  __asm__ volatile("vcvtb.f32.f16 s0, s0" ::: "s0");
#endif
#ifdef __ARM_NEON
  __asm__ volatile("vadd.i32 q0, q0, q0" ::: "q0");
#endif
#if defined(__ARM_FEATURE_DIRECTED_ROUNDING)
  __asm__ volatile("vrintm.f32 s0, s0" ::: "s0");
#endif
#if __ARM_ARCH >= 8
  __asm__ volatile("lda r0, [%0]" :: "r"(word) : "r0");
#endif
#elif defined(__riscv)
#ifdef __riscv_zba
  __asm__ volatile("sh1add a0, a0, a0" ::: "a0");
#endif
#ifdef __riscv_zbb
  __asm__ volatile("clz a0, a0" ::: "a0");
#endif
#ifdef __riscv_zbs
  __asm__ volatile("bset a0, a0, a0" ::: "a0");
#endif
#ifdef __riscv_zfh
  __asm__ volatile("fadd.h fa0, fa0, fa0" ::: "fa0");
#endif
#ifdef __riscv_vector
  __asm__ volatile("vsetivli zero, 4, e32, m1, ta, ma" ::: );
#endif
#endif
}
