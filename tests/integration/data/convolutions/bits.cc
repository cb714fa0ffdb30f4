// Prints digests of what a convolution's kernel for blocks of eight channels computes from the same numbers, on ARM64 by
// ours and on x86-64 by MLAS's for AVX2 with FMA.
#if defined(__aarch64__)
#include "neon_convolutions.cc"
void MLASCALL MlasActivation(const MLAS_ACTIVATION*, float*, const float*, size_t, size_t, size_t) {}
thread_local size_t ThreadedBufSize = 0;
thread_local std::unique_ptr<uint8_t, decltype(&free)> ThreadedBufHolder(nullptr, &free);
#else
#include <cstddef>
extern "C" void MlasConvNchwcFloatKernelFma3(const float*, const float*, float*, size_t, size_t, size_t, size_t, size_t,
                                             size_t, size_t, size_t, const float*, size_t, size_t, size_t, size_t,
                                             size_t, const float*, unsigned);
#endif

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

static uint32_t state = 1;

static std::vector<float> numbers(size_t count) {
  std::vector<float> made(count);
  for (float& each : made) {
    state = state * 1664525u + 1013904223u;
    each = static_cast<float>(static_cast<int32_t>(state) >> 8) / 8388608.0f;
  }
  return made;
}

int main() {
  constexpr size_t block = 8, bytes = 4 * block, width = 19;
  for (size_t kernel = 1; kernel <= 5; kernel += 2) {
    for (size_t filters = 1; filters <= 4; filters++) {
      for (unsigned flags = 0; flags < 8; flags++) {
        const size_t wide = width - kernel + 1;
        const auto input = numbers(kernel * width * block), filter = numbers(filters * kernel * kernel * block * block);
        const auto bias = numbers(filters * block);
        auto output = numbers(filters * wide * block);
#if defined(__aarch64__)
        Convolve<Blocked>(
#else
        MlasConvNchwcFloatKernelFma3(
#endif
            input.data(), filter.data(), output.data(), bytes, bytes, filters, (width - kernel) * bytes,
            kernel * kernel * block * bytes, wide * bytes, kernel, kernel, input.data(), width * bytes, width * bytes, 0,
            wide, 0, bias.data(), flags);
        uint64_t digest = 14695981039346656037u;
        for (const float each : output) {
          uint32_t bits;
          std::memcpy(&bits, &each, sizeof(bits));
          digest = (digest ^ bits) * 1099511628211u;
        }
        std::printf("%zu %zu %u %016llx\n", kernel, filters, flags, static_cast<unsigned long long>(digest));
      }
    }
  }
}
