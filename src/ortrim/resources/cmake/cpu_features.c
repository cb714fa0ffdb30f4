/* What `__builtin_cpu_supports` reads; it is compiler-rt's, which the hermetic toolchain's is built without. ONNX
   Runtime 1.24 reads one bit of it, `waitpkg`, to spin with less power; without it, it spins as before. */

unsigned __cpu_features2[4] __attribute__((visibility("hidden")));
