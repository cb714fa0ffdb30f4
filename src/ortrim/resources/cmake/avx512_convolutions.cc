// Convolutions of models in NCHWc layout with block size 8, for processors with AVX-512, whose vectors take two blocks.
//
// MLAS computes such models by AVX2, eight channels at a time: where there is AVX-512, its own kernels want blocks of
// sixteen, which other processors cannot run. These ones read the same model: two filters' blocks side by side in one
// vector, or in depthwise convolutions two neighbouring pixels. A channel's sums are added in the order of the AVX2
// kernels, so that outputs are the same to the last bit. Upstream: core/mlas/lib/{snchwc.cpp,x86_64/SconvKernelCommon.h}.
#include <cpuid.h>
#include <immintrin.h>

#include "mlasi.h"

#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512vl,fma"))), apply_to = function)

#include "nchwc_rows.h"

namespace {

// The blocks of two filters in one vector; `stride` is the way from one to the other in bytes.
struct Two {
  using Vector = __m512;
  static constexpr size_t kFilters = 2;
  static Vector Zero() { return _mm512_setzero_ps(); }
  static Vector Every(float value) { return _mm512_set1_ps(value); }
  static Vector Load(const float* blocks, size_t stride) {
    const __m512 low = _mm512_castps256_ps512(_mm256_loadu_ps(blocks));
    return _mm512_insertf32x8(low, _mm256_loadu_ps(Advance(blocks, stride)), 1);
  }
  static void Store(Vector value, float* blocks, size_t stride) {
    _mm256_storeu_ps(blocks, _mm512_castps512_ps256(value));
    _mm256_storeu_ps(Advance(blocks, stride), _mm512_extractf32x8_ps(value, 1));
  }
  static Vector Add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  static Vector AddProduct(Vector a, Vector b, Vector sum) { return _mm512_fmadd_ps(a, b, sum); }
  static Vector Largest(Vector a, Vector b) { return _mm512_max_ps(a, b); }
};

struct One {
  using Vector = __m256;
  static constexpr size_t kFilters = 1;
  static Vector Zero() { return _mm256_setzero_ps(); }
  static Vector Every(float value) { return _mm256_set1_ps(value); }
  static Vector Load(const float* block, size_t) { return _mm256_loadu_ps(block); }
  static void Store(Vector value, float* block, size_t) { _mm256_storeu_ps(block, value); }
  static Vector Add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  static Vector AddProduct(Vector a, Vector b, Vector sum) { return _mm256_fmadd_ps(a, b, sum); }
  static Vector Largest(Vector a, Vector b) { return _mm256_max_ps(a, b); }
};

// Stores sums after what the flags ask for. Those of one vector lie `step` floats from the next, its parts `apart` bytes.
template <typename V, int Count>
[[gnu::always_inline]] void StoreSums(typename V::Vector (&sums)[Count], float* output, size_t step, size_t apart,
                                  const float* bias, size_t bias_apart, unsigned flags) {
  if (flags & kAccumulate)
    ORTRIM_UNROLLED (int i = 0; i < Count; i++) sums[i] = V::Add(sums[i], V::Load(output + step * i, apart));
  if (flags & kBias) {
    const auto biases = V::Load(bias, bias_apart);
    ORTRIM_UNROLLED (int i = 0; i < Count; i++) sums[i] = V::Add(sums[i], biases);
  }
  if (flags & kRelu) ORTRIM_UNROLLED (int i = 0; i < Count; i++) sums[i] = V::Largest(V::Zero(), sums[i]);
  ORTRIM_UNROLLED (int i = 0; i < Count; i++) V::Store(sums[i], output + step * i, apart);
}

// The sums of `Pixels` outputs for `Vectors` vectors of filters, kept in registers.
template <typename V, int Vectors, int Pixels>
struct Sums {
  typename V::Vector of[Vectors][Pixels];

  Sums() {
    ORTRIM_UNROLLED (int v = 0; v < Vectors; v++)
      ORTRIM_UNROLLED (int pixel = 0; pixel < Pixels; pixel++) of[v][pixel] = V::Zero();
  }

  // Adds the products of `Channels` input channels with their filters.
  template <int Channels>
  [[gnu::always_inline]] void Add(const float* input, size_t stride, const float* filter, size_t filter_stride) {
#pragma clang loop unroll(disable)
    for (int channel = 0; channel < Channels; channel++) {
      typename V::Vector weights[Vectors];
      ORTRIM_UNROLLED (int v = 0; v < Vectors; v++)
        weights[v] = V::Load(Advance(filter, V::kFilters * v * filter_stride) + kBlock * channel, filter_stride);
      ORTRIM_UNROLLED (int pixel = 0; pixel < Pixels; pixel++) {
        const auto value = V::Every(Advance(input, pixel * stride)[channel]);
        ORTRIM_UNROLLED (int v = 0; v < Vectors; v++) of[v][pixel] = V::AddProduct(value, weights[v], of[v][pixel]);
      }
    }
  }

  // Stores the sums after what the flags ask for.
  [[gnu::always_inline]] void Store(const Row& row) {
    ORTRIM_UNROLLED (int v = 0; v < Vectors; v++) {
      float* output = Advance(row.output, V::kFilters * v * row.output_stride);
      const float* bias = row.bias + kBlock * V::kFilters * v;
      StoreSums<V>(of[v], output, kBlock, row.output_stride, bias, kBytes, row.flags);
    }
  }
};

// Kernels of any size: `Channels` is 8 where the input lies in blocks, 1 where it is one plane.
template <int Channels>
struct Direct {
  template <typename V, int Vectors, int Pixels, bool Padded>
  [[gnu::noinline]] static void Compute(const Row& row) {
    Sums<V, Vectors, Pixels> sums;
    const float *input = row.input, *filter = row.filter, *base = row.input_base;
    for (size_t y = 0; y < row.height; y++) {
      for (size_t x = 0; x < row.width; x++) {
        if (!Padded || IsInside(input, base, row.input_width))
          sums.template Add<Channels>(input, row.stride, filter, row.filter_stride);
        input = Advance(input, row.dilation);
        filter += kBlock * Channels;
      }
      input = Advance(input, row.input_stride);
      base = Advance(base, row.dilated_input_width);
    }
    sums.Store(row);
  }
};

// Kernels of one pixel, over `width` blocks of input channels. A last pixel is computed as if it had padding, which these
// kernels do not ask.
struct Pointwise {
  template <typename V, int Vectors, int Pixels, bool>
  [[gnu::noinline]] static void Compute(const Row& row) {
    Sums<V, Vectors, Pixels> sums;
    const float *input = row.input, *filter = row.filter;
    for (size_t block = 0; block < row.width; block++) {
      sums.template Add<kBlock>(input, row.stride, filter, row.filter_stride);
      input = Advance(input, row.dilation);
      filter += kBlock * kBlock;
    }
    sums.Store(row);
  }
};

template <typename Kernel, typename V, int Vectors, int Pixels, bool Padded>
void Run(Row& row, size_t& count) {
  while (count >= Pixels) {
    Kernel::template Compute<V, Vectors, Pixels, Padded>(row);
    row.input = Advance(row.input, Pixels * row.stride);
    row.output += kBlock * Pixels;
    count -= Pixels;
  }
}

template <typename Kernel, typename V, int Vectors>
void RunAll(Row row, size_t left, size_t count, size_t right) {
  Run<Kernel, V, Vectors, 1, true>(row, left);
  Run<Kernel, V, Vectors, 12, false>(row, count);
  Run<Kernel, V, Vectors, 5, false>(row, count);
  Run<Kernel, V, Vectors, 2, false>(row, count);
  count += right;
  Run<Kernel, V, Vectors, 1, true>(row, count);
}

template <typename Kernel>
void RunFilters(Row row, size_t filters, size_t left, size_t count, size_t right) {
  if (filters == 4) return RunAll<Kernel, Two, 2>(row, left, count, right);
  if (filters >= 2) {
    RunAll<Kernel, Two, 1>(row, left, count, right);
    row.SkipTwoFilters();
  }
  if (filters % 2 != 0) RunAll<Kernel, One, 1>(row, left, count, right);
}

// Two blocks of which one follows the other in memory.
struct Adjacent : Two {
  static Vector Load(const float* blocks, size_t) { return _mm512_loadu_ps(blocks); }
};

// A filter of one channel each, for a block of channels: one pixel, or two side by side in one vector.
template <typename V, typename Pixel>
struct Depthwise {
  template <typename, int, int Pixels, bool Padded>
  [[gnu::noinline]] static void Compute(const Row& row) {
    constexpr int kSteps = Pixels / V::kFilters;
    typename V::Vector sums[kSteps];
    ORTRIM_UNROLLED (int step = 0; step < kSteps; step++) sums[step] = V::Zero();
    const float *input = row.input, *filter = row.filter, *base = row.input_base;
    for (size_t y = 0; y < row.height; y++) {
      for (size_t x = 0; x < row.width; x++) {
        if (!Padded || IsInside(input, base, row.input_width)) {
          const auto weights = V::Load(filter, 0);
          ORTRIM_UNROLLED (int step = 0; step < kSteps; step++)
            sums[step] = V::AddProduct(Pixel::Load(Advance(input, V::kFilters * step * row.stride), row.stride),
                                       weights, sums[step]);
        }
        input = Advance(input, row.dilation);
        filter += kBlock;
      }
      input = Advance(input, row.input_stride);
      base = Advance(base, row.dilated_input_width);
    }
    StoreSums<V>(sums, row.output, kBlock * V::kFilters, kBytes, row.bias, 0, row.flags);
  }
};

constexpr size_t kNarrow = 8;
MLAS_CONV_DEPTHWISE_FLOAT_KERNEL* narrow;  // MLAS's own kernel, quicker for rows of few pixels

void MLASCALL ConvolveDepthwise(const float* input, const float* filter, float* output, size_t stride, size_t dilation,
                                size_t input_stride, size_t height, size_t width, const float* input_base,
                                size_t input_width, size_t dilated_input_width, size_t left, size_t count, size_t right,
                                const float* bias, unsigned flags) {
  if (count < kNarrow)
    return narrow(input, filter, output, stride, dilation, input_stride, height, width, input_base, input_width,
                  dilated_input_width, left, count, right, bias, flags);
  Row row{input, filter, output, stride, dilation, input_stride, 0, 0, height, width,
          input_base, input_width, dilated_input_width, bias, flags};
  Run<Depthwise<One, One>, One, 1, 1, true>(row, left);
  if (stride == kBytes) {
    Run<Depthwise<Two, Adjacent>, Two, 1, 16, false>(row, count);
    Run<Depthwise<Two, Adjacent>, Two, 1, 4, false>(row, count);
  }
  Run<Depthwise<Two, Two>, Two, 1, 8, false>(row, count);
  Run<Depthwise<Two, Two>, Two, 1, 2, false>(row, count);
  count += right;
  Run<Depthwise<One, One>, One, 1, 1, true>(row, count);
}

#pragma clang attribute pop

constexpr unsigned kSavedState = 0x18000000, kAvx512 = 0xC0030000;  // F, DQ, BW and VL
constexpr unsigned kStateOfAvx512 = 0xE6;
constexpr unsigned kFamilyOfZen4 = 0x19;

// Whether the processor has AVX-512 and computes whole vectors at once: Zen 4 takes each in two halves, so that nothing
// is gained there.
bool IsWide() {
  unsigned a, b, c, d, low, high;
  if (!__get_cpuid(0, &a, &b, &c, &d)) return false;
  const bool by_amd = c == signature_AMD_ecx;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & kSavedState) != kSavedState) return false;
  const unsigned family = (a >> 8 & 0xF) + (a >> 20 & 0xFF);
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return !(by_amd && family == kFamilyOfZen4) && (low & kStateOfAvx512) == kStateOfAvx512 &&
         __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & kAvx512) == kAvx512;
}

bool UseBlocksOf8(MLAS_PLATFORM& table) {
  if (table.NchwcBlockSize != kBlock || !IsWide()) return false;
  narrow = table.ConvDepthwiseFloatKernel;
  table.ConvNchwFloatKernel = Convolve<Direct<1>>;
  table.ConvNchwcFloatKernel = Convolve<Direct<kBlock>>;
  table.ConvDepthwiseFloatKernel = ConvolveDepthwise;
  table.ConvPointwiseFloatKernel = ConvolvePointwise<Pointwise>;
  return true;
}

[[maybe_unused]] const bool used = UseBlocksOf8(GetMlasPlatform());

}  // namespace
