// Convolutions of models in NCHWc layout with block size 8, for processors with AVX-512, whose vectors take two blocks.
//
// MLAS computes such models by AVX2, eight channels at a time: where there is AVX-512, its own kernels want blocks of
// sixteen, which other processors cannot run. These ones read the same model: two filters' blocks side by side in one
// vector, or in depthwise convolutions two neighbouring pixels. A channel's sums are added in the order of the AVX2
// kernels, so that outputs are the same to the last bit. Upstream: core/mlas/lib/{snchwc.cpp,x86_64/SconvKernelCommon.h}.
#include <cpuid.h>
#include <immintrin.h>

#include <algorithm>

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
      auto& sums = of[v];
      float* output = Advance(row.output, V::kFilters * v * row.output_stride);
      if (row.flags & kAccumulate)
        ORTRIM_UNROLLED (int i = 0; i < Pixels; i++)
          sums[i] = V::Add(sums[i], V::Load(output + kBlock * i, row.output_stride));
      if (row.flags & kBias) {
        const auto biases = V::Load(row.bias + kBlock * V::kFilters * v, kBytes);
        ORTRIM_UNROLLED (int i = 0; i < Pixels; i++) sums[i] = V::Add(sums[i], biases);
      }
      if (row.flags & kRelu) ORTRIM_UNROLLED (int i = 0; i < Pixels; i++) sums[i] = V::Largest(V::Zero(), sums[i]);
      ORTRIM_UNROLLED (int i = 0; i < Pixels; i++) V::Store(sums[i], output + kBlock * i, row.output_stride);
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

// Asks for the weights of one block of channels, which `Filters` blocks of filters have.
template <size_t Filters>
[[gnu::always_inline]] inline void Prefetch(const float* filter, size_t filter_stride) {
  ORTRIM_UNROLLED (size_t i = 0; i < Filters; i++)
    ORTRIM_UNROLLED (size_t at = 0; at < kBlock * kBlock; at += 16)
      _mm_prefetch(reinterpret_cast<const char*>(Advance(filter, i * filter_stride) + at), _MM_HINT_T0);
}

constexpr size_t kResident = 8;                // blocks of channels, whose weights stay in the first cache
constexpr size_t kAhead = 4 * kBlock * kBlock;  // weights that come soon enough

// Kernels of one pixel, over `width` blocks of input channels. A last pixel is computed as if it had padding, which these
// kernels do not ask.
struct Pointwise {
  template <typename V, int Vectors, int Pixels, bool>
  [[gnu::noinline]] static void Compute(const Row& row) {
    Sums<V, Vectors, Pixels> sums;
    const float *input = row.input, *filter = row.filter;
    for (size_t block = 0; block < row.width; block++) {
      if (row.width > kResident) Prefetch<Vectors * V::kFilters>(filter + kAhead, row.filter_stride);
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

// A filter of one channel each, for a block of channels: kernels of `Width` neighbouring places, from pixel to pixel. Two
// neighbouring pixels are one vector, which is read once for all places that it stands at.
template <int Width>
struct Depthwise {
  static constexpr int kPadding = (Width - 1) / 2;  // at most, on each side

  // Computes a run of pairs; of the last one, `stored` says whether it is one pixel alone.
  template <int Pairs>
  [[gnu::noinline]] static void Compute(const Row& row, __mmask16 stored) {
    constexpr int kReads = 2 * Pairs + Width - 2;
    constexpr auto reaches = [](int i) { return i < kPadding || i > kReads - kPadding - 2; };
    __mmask16 inside[kReads];
    ORTRIM_UNROLLED (int i = 0; i < kReads; i++) {
      const float* const pair = row.input + kBlock * i;
      if (reaches(i))
        inside[i] = (IsInside(pair, row.input_base, row.input_width) ? 0xFF : 0) |
                    (IsInside(pair + kBlock, row.input_base, row.input_width) ? 0xFF00 : 0);
    }
    __m512 sums[Pairs];
    ORTRIM_UNROLLED (int pair = 0; pair < Pairs; pair++) sums[pair] = _mm512_setzero_ps();
    const float *input = row.input, *filter = row.filter;
    for (size_t y = 0; y < row.height; y++) {
      __m512 weights[Width];
      ORTRIM_UNROLLED (int x = 0; x < Width; x++)
        weights[x] = _mm512_broadcast_f32x8(_mm256_loadu_ps(filter + kBlock * x));
      ORTRIM_UNROLLED (int i = 0; i < kReads; i++) {
        const float* const at = input + kBlock * i;
        const __m512 values = reaches(i) ? _mm512_maskz_loadu_ps(inside[i], at) : _mm512_loadu_ps(at);
        ORTRIM_UNROLLED (int pair = 0; pair < Pairs; pair++) {
          const int x = i - 2 * pair;
          if (x < 0 || x >= Width) continue;
          sums[pair] = reaches(i) ? _mm512_mask3_fmadd_ps(values, weights[x], sums[pair], inside[i])
                                  : _mm512_fmadd_ps(values, weights[x], sums[pair]);
        }
      }
      input = Advance(input, row.dilated_input_width);
      filter += kBlock * Width;
    }
    if (row.flags & kBias) {
      const __m512 bias = _mm512_broadcast_f32x8(_mm256_loadu_ps(row.bias));
      ORTRIM_UNROLLED (int pair = 0; pair < Pairs; pair++) sums[pair] = _mm512_add_ps(sums[pair], bias);
    }
    ORTRIM_UNROLLED (int pair = 0; pair < Pairs; pair++) {
      float* const output = row.output + 2 * kBlock * pair;
      if (row.flags & kRelu) sums[pair] = _mm512_max_ps(_mm512_setzero_ps(), sums[pair]);
      _mm512_mask_storeu_ps(output, pair + 1 == Pairs ? stored : 0xFFFF, sums[pair]);
    }
  }

  // Computes a row as tiles of one width, of which the last one computes pixels of the one before it again.
  static void Run(const Row& row, size_t pixels) {
    const auto run = [&](auto* compute, size_t wide) {
      for (size_t done = 0; done < pixels; done += wide) {
        const size_t first = std::min(done, pixels - std::min(wide, pixels));
        Row tile = row;
        tile.input += kBlock * first;
        tile.output += kBlock * first;
        compute(tile, pixels < wide ? 0xFF : 0xFFFF);
      }
    };
    if (pixels < 14) run(Compute<4>, 8);
    else if ((pixels + 13) / 14 == (pixels + 15) / 16) run(Compute<7>, 14);
    else run(Compute<8>, 16);
  }
};

constexpr size_t kFewest = 7;  // pixels, which leave half of the last pair of four
MLAS_CONV_DEPTHWISE_FLOAT_KERNEL* others;  // MLAS's own, for kernels of other forms

void MLASCALL ConvolveDepthwise(const float* input, const float* filter, float* output, size_t stride, size_t dilation,
                                size_t input_stride, size_t height, size_t width, const float* input_base,
                                size_t input_width, size_t dilated_input_width, size_t left, size_t count, size_t right,
                                const float* bias, unsigned flags) {
  const size_t padding = std::max(left, right), pixels = left + count + right;
  const bool neighbours = stride == kBytes && dilation == kBytes && 2 * padding < width;
  const bool fits = neighbours && pixels >= kFewest && !(flags & kAccumulate);
  const Row row{input, filter, output, stride, dilation, input_stride, 0, 0, height, width,
                input_base, input_width, dilated_input_width, bias, flags};
  if (fits && width == 3) return Depthwise<3>::Run(row, pixels);
  if (fits && width == 5) return Depthwise<5>::Run(row, pixels);
  others(input, filter, output, stride, dilation, input_stride, height, width, input_base, input_width,
         dilated_input_width, left, count, right, bias, flags);
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
  others = table.ConvDepthwiseFloatKernel;
  table.ConvNchwFloatKernel = Convolve<Direct<1>>;
  table.ConvNchwcFloatKernel = Convolve<Direct<kBlock>>;
  table.ConvDepthwiseFloatKernel = ConvolveDepthwise;
  table.ConvPointwiseFloatKernel = ConvolvePointwise<Pointwise>;
  return true;
}

[[maybe_unused]] const bool used = UseBlocksOf8(GetMlasPlatform());

}  // namespace
