// Convolutions and pooling of models in NCHWc layout with block size 8 on ARM64, where MLAS has none as it is built here.
//
// The models are those that x64 runs. `snchwc.cpp` splits the work into rows and asks the processor's table for kernels
// on x64 and LoongArch alone; here it is compiled with a table of these ones. A block of channels takes two vectors. A
// weight is multiplied by one lane of a vector of inputs, so that no value is broadcast, and all sums of up to six
// pixels of two filters' blocks stay in registers. Upstream: core/mlas/lib/{mlasi.h,reorder.cpp,snchwc.cpp}.
#include <arm_neon.h>

#include "mlasi.h"

#include "nchwc_rows.h"

namespace {

using Vector = float32x4_t;

alignas(16) constexpr float kZeros[2 * kBlock] = {};

// The products of eight channels in assembly: the compiler would load all weights first, and lack registers for sums.
// `a` to `d` are the sums of two blocks' halves, `x` the pixels; a numbered macro is for as many pixels.
#define ORTRIM_LOAD(half, i) "ldr %q[x" #i "], [%[" #half "], %[o" #i "]]\n"
#define ORTRIM_LOAD_1(half) ORTRIM_LOAD(half, 0)
#define ORTRIM_LOAD_2(half) ORTRIM_LOAD_1(half) ORTRIM_LOAD(half, 1)
#define ORTRIM_LOAD_3(half) ORTRIM_LOAD_2(half) ORTRIM_LOAD(half, 2)
#define ORTRIM_LOAD_4(half) ORTRIM_LOAD_3(half) ORTRIM_LOAD(half, 3)
#define ORTRIM_LOAD_5(half) ORTRIM_LOAD_4(half) ORTRIM_LOAD(half, 4)
#define ORTRIM_LOAD_6(half) ORTRIM_LOAD_5(half) ORTRIM_LOAD(half, 5)
#define ORTRIM_FMLA(sum, w, lane, i) "fmla %[" #sum #i "].4s, %[" #w "].4s, %[x" #i "].s[" #lane "]\n"
#define ORTRIM_FMLA_1(sum, w, lane) ORTRIM_FMLA(sum, w, lane, 0)
#define ORTRIM_FMLA_2(sum, w, lane) ORTRIM_FMLA_1(sum, w, lane) ORTRIM_FMLA(sum, w, lane, 1)
#define ORTRIM_FMLA_3(sum, w, lane) ORTRIM_FMLA_2(sum, w, lane) ORTRIM_FMLA(sum, w, lane, 2)
#define ORTRIM_FMLA_4(sum, w, lane) ORTRIM_FMLA_3(sum, w, lane) ORTRIM_FMLA(sum, w, lane, 3)
#define ORTRIM_FMLA_5(sum, w, lane) ORTRIM_FMLA_4(sum, w, lane) ORTRIM_FMLA(sum, w, lane, 4)
#define ORTRIM_FMLA_6(sum, w, lane) ORTRIM_FMLA_5(sum, w, lane) ORTRIM_FMLA(sum, w, lane, 5)
#define ORTRIM_BLOCK(n, filter, a, b, lane, at) \
  "ldp %q[low], %q[high], [%[" #filter "], #" #at "]\n" ORTRIM_FMLA_##n(a, low, lane) ORTRIM_FMLA_##n(b, high, lane)
#define ORTRIM_ONE(n, lane, at) ORTRIM_BLOCK(n, filter, a, b, lane, at)
#define ORTRIM_TWO(n, lane, at) ORTRIM_ONE(n, lane, at) ORTRIM_BLOCK(n, second, c, d, lane, at)
#define ORTRIM_OUT_1(sum, v) [sum##0] "+w"(of[v][0])
#define ORTRIM_OUT_2(sum, v) ORTRIM_OUT_1(sum, v), [sum##1] "+w"(of[v][1])
#define ORTRIM_OUT_3(sum, v) ORTRIM_OUT_2(sum, v), [sum##2] "+w"(of[v][2])
#define ORTRIM_OUT_4(sum, v) ORTRIM_OUT_3(sum, v), [sum##3] "+w"(of[v][3])
#define ORTRIM_OUT_5(sum, v) ORTRIM_OUT_4(sum, v), [sum##4] "+w"(of[v][4])
#define ORTRIM_OUT_6(sum, v) ORTRIM_OUT_5(sum, v), [sum##5] "+w"(of[v][5])
#define ORTRIM_NEW_1 [x0] "=&w"(values[0])
#define ORTRIM_NEW_2 ORTRIM_NEW_1, [x1] "=&w"(values[1])
#define ORTRIM_NEW_3 ORTRIM_NEW_2, [x2] "=&w"(values[2])
#define ORTRIM_NEW_4 ORTRIM_NEW_3, [x3] "=&w"(values[3])
#define ORTRIM_NEW_5 ORTRIM_NEW_4, [x4] "=&w"(values[4])
#define ORTRIM_NEW_6 ORTRIM_NEW_5, [x5] "=&w"(values[5])
#define ORTRIM_AT_1 [o0] "r"(offsets[0])
#define ORTRIM_AT_2 ORTRIM_AT_1, [o1] "r"(offsets[1])
#define ORTRIM_AT_3 ORTRIM_AT_2, [o2] "r"(offsets[2])
#define ORTRIM_AT_4 ORTRIM_AT_3, [o3] "r"(offsets[3])
#define ORTRIM_AT_5 ORTRIM_AT_4, [o4] "r"(offsets[4])
#define ORTRIM_AT_6 ORTRIM_AT_5, [o5] "r"(offsets[5])
#define ORTRIM_EIGHT(add, n)                                                                                   \
  ORTRIM_LOAD_##n(input) add(n, 0, 0) add(n, 1, 32) add(n, 2, 64) add(n, 3, 96)                                \
  ORTRIM_LOAD_##n(half) add(n, 0, 128) add(n, 1, 160) add(n, 2, 192) add(n, 3, 224)
#define ORTRIM_ADD_ONE(n)                                                                                      \
  __asm__ volatile(ORTRIM_EIGHT(ORTRIM_ONE, n)                                                                 \
                   : ORTRIM_OUT_##n(a, 0), ORTRIM_OUT_##n(b, 1), ORTRIM_NEW_##n, [low] "=&w"(low),             \
                     [high] "=&w"(high)                                                                        \
                   : ORTRIM_AT_##n, [input] "r"(input), [half] "r"(input + 4), [filter] "r"(filter)            \
                   : "memory");
#define ORTRIM_ADD_TWO(n)                                                                                      \
  __asm__ volatile(ORTRIM_EIGHT(ORTRIM_TWO, n)                                                                 \
                   : ORTRIM_OUT_##n(a, 0), ORTRIM_OUT_##n(b, 1), ORTRIM_OUT_##n(c, 2), ORTRIM_OUT_##n(d, 3),   \
                     ORTRIM_NEW_##n, [low] "=&w"(low), [high] "=&w"(high)                                      \
                   : ORTRIM_AT_##n, [input] "r"(input), [half] "r"(input + 4), [filter] "r"(filter),           \
                     [second] "r"(second)                                                                      \
                   : "memory");
#define ORTRIM_PIXELS(add)                          \
  if constexpr (Pixels == 1) { add(1) }             \
  if constexpr (Pixels == 2) { add(2) }             \
  if constexpr (Pixels == 3) { add(3) }             \
  if constexpr (Pixels == 4) { add(4) }             \
  if constexpr (Pixels == 5) { add(5) }             \
  if constexpr (Pixels == 6) { add(6) }

// The sums of `Pixels` outputs for the filters of `Blocks` blocks, kept in registers.
template <int Blocks, int Pixels>
struct Sums {
  Vector of[2 * Blocks][Pixels] = {};

  // Stores the sums after what the flags ask for, in the order of x64's kernels: outputs are equal to theirs to the last
  // bit. Begun with what was there, the sums of all blocks of channels would be one long chain, and less exact.
  [[gnu::always_inline]] void Store(const Row& row) {
    ORTRIM_UNROLLED (int v = 0; v < 2 * Blocks; v++) {
      float* const output = Advance(row.output, v / 2 * row.output_stride) + v % 2 * 4;
      if (row.flags & kAccumulate)
        ORTRIM_UNROLLED (int p = 0; p < Pixels; p++) of[v][p] = vaddq_f32(of[v][p], vld1q_f32(output + kBlock * p));
      if (row.flags & kBias) {
        const Vector bias = vld1q_f32(row.bias + 4 * v);
        ORTRIM_UNROLLED (int p = 0; p < Pixels; p++) of[v][p] = vaddq_f32(of[v][p], bias);
      }
      if (row.flags & kRelu) ORTRIM_UNROLLED (int p = 0; p < Pixels; p++) of[v][p] = vmaxq_f32(of[v][p], vdupq_n_f32(0));
      ORTRIM_UNROLLED (int p = 0; p < Pixels; p++) vst1q_f32(output + kBlock * p, of[v][p]);
    }
  }

  // Adds the products of eight channels of each pixel, which lie `offsets` bytes from the input, with their weights.
  [[gnu::always_inline]] void Add(const float* input, const size_t (&offsets)[Pixels], const float* filter,
                                  const float* second) {
    Vector values[Pixels], low, high;
    if constexpr (Blocks == 2) {
      ORTRIM_PIXELS(ORTRIM_ADD_TWO)
    } else {
      ORTRIM_PIXELS(ORTRIM_ADD_ONE)
    }
  }
};

// Kernels of any size over blocks of channels. A pointwise convolution is one whose pixels are the blocks.
struct Blocked {
  template <int Blocks, int Pixels, bool Padded>
  [[gnu::noinline]] static void Compute(const Row& row) {
    Sums<Blocks, Pixels> sums;
    const float *input = row.input, *filter = row.filter, *second = Advance(filter, row.filter_stride);
    const float* base = row.input_base;
    const size_t stride = row.stride, dilation = row.dilation, input_stride = row.input_stride, width = row.width;
    const size_t input_width = row.input_width, down = row.dilated_input_width;
    size_t offsets[Pixels];
    ORTRIM_UNROLLED (int p = 0; p < Pixels; p++) offsets[p] = p * stride;
    for (size_t y = row.height; y > 0; y--) {
      for (size_t x = width; x > 0; x--) {
        if constexpr (Padded) {
          ORTRIM_UNROLLED (int p = 0; p < Pixels; p++) {
            const float* pixel = Advance(input, p * stride);
            offsets[p] = reinterpret_cast<uintptr_t>(IsInside(pixel, base, input_width) ? pixel : kZeros) -
                         reinterpret_cast<uintptr_t>(input);
          }
        }
        sums.Add(input, offsets, filter, second);
        input = Advance(input, dilation);
        filter += kBlock * kBlock;
        second += kBlock * kBlock;
      }
      input = Advance(input, input_stride);
      base = Advance(base, down);
    }
    sums.Store(row);
  }
};

// Kernels of any size over one plane of the input.
struct Plane {
  template <int Blocks, int Pixels, bool Padded>
  [[gnu::noinline]] static void Compute(const Row& row) {
    Sums<Blocks, Pixels> sums;
    const float *input = row.input, *filter = row.filter, *base = row.input_base;
    for (size_t y = 0; y < row.height; y++) {
      for (size_t x = 0; x < row.width; x++) {
        Vector weights[2 * Blocks];
        ORTRIM_UNROLLED (int v = 0; v < 2 * Blocks; v++)
          weights[v] = vld1q_f32(Advance(filter, v / 2 * row.filter_stride) + v % 2 * 4);
        ORTRIM_UNROLLED (int p = 0; p < Pixels; p++) {
          const float* pixel = Advance(input, p * row.stride);
          const float value = !Padded || IsInside(pixel, base, row.input_width) ? *pixel : 0;
          ORTRIM_UNROLLED (int v = 0; v < 2 * Blocks; v++)
            sums.of[v][p] = vfmaq_n_f32(sums.of[v][p], weights[v], value);
        }
        input = Advance(input, row.dilation);
        filter += kBlock;
      }
      input = Advance(input, row.input_stride);
      base = Advance(base, row.dilated_input_width);
    }
    sums.Store(row);
  }
};

// A filter of one channel each, for a block of channels.
template <int Width>
struct Depthwise {
  template <int, int Pixels, bool Padded>
  [[gnu::noinline]] static void Compute(const Row& row) {
    Sums<1, Pixels> sums;
    const float *input = row.input, *filter = row.filter, *base = row.input_base;
    for (size_t y = 0; y < row.height; y++) {
      if constexpr (Width > 0) {  // neighbouring pixels, of which each is read once
        Vector weights[Width][2];
        ORTRIM_UNROLLED (int x = 0; x < Width; x++)
          ORTRIM_UNROLLED (int v = 0; v < 2; v++) weights[x][v] = vld1q_f32(filter + kBlock * x + 4 * v);
        ORTRIM_UNROLLED (int i = 0; i < Pixels + Width - 1; i++) {
          const float* place = input + kBlock * i;
          if (!Padded || IsInside(place, base, row.input_width)) {
            const Vector values[2] = {vld1q_f32(place), vld1q_f32(place + 4)};
            ORTRIM_UNROLLED (int x = 0; x < Width; x++) {
              const int pixel = i - x;
              if (pixel >= 0 && pixel < Pixels)
                ORTRIM_UNROLLED (int v = 0; v < 2; v++)
                  sums.of[v][pixel] = vfmaq_f32(sums.of[v][pixel], values[v], weights[x][v]);
            }
          }
        }
        input = Advance(input, Width * kBytes);
        filter += Width * kBlock;
      } else {
        for (size_t x = 0; x < row.width; x++) {
          const Vector weights[2] = {vld1q_f32(filter), vld1q_f32(filter + 4)};
          ORTRIM_UNROLLED (int p = 0; p < Pixels; p++) {
            const float* place = Advance(input, p * row.stride);
            if (!Padded || IsInside(place, base, row.input_width))
              ORTRIM_UNROLLED (int v = 0; v < 2; v++)
                sums.of[v][p] = vfmaq_f32(sums.of[v][p], vld1q_f32(place + 4 * v), weights[v]);
          }
          input = Advance(input, row.dilation);
          filter += kBlock;
        }
      }
      input = Advance(input, row.input_stride);
      base = Advance(base, row.dilated_input_width);
    }
    sums.Store(row);
  }
};

template <typename Kernel, int Blocks, int Pixels>
void RunTile(const Row& row, bool padded) {
  padded ? Kernel::template Compute<Blocks, Pixels, true>(row) : Kernel::template Compute<Blocks, Pixels, false>(row);
}

// Computes `count` pixels of a row, of which the first `left` and the last `right` reach into the padding, as few tiles
// of about the same width.
template <typename Kernel, int Blocks, int Most>
void Run(Row row, size_t left, size_t count, size_t right) {
  const size_t end = left + count;
  const size_t all = end + right;
  for (size_t done = 0, wide; done < all; done += wide) {
    const size_t tiles = (all - done + Most - 1) / Most;
    wide = (all - done + tiles - 1) / tiles;
    const bool padded = done < left || done + wide > end;
    switch (wide) {
      case 1: RunTile<Kernel, Blocks, 1>(row, padded); break;
      case 2: RunTile<Kernel, Blocks, 2>(row, padded); break;
      case 3: RunTile<Kernel, Blocks, 3>(row, padded); break;
      case 4: RunTile<Kernel, Blocks, 4>(row, padded); break;
      case 5: RunTile<Kernel, Blocks, 5>(row, padded); break;
      default: RunTile<Kernel, Blocks, 6>(row, padded); break;
    }
    row.input = Advance(row.input, wide * row.stride);
    row.output += kBlock * wide;
  }
}

template <typename Kernel>
void RunFilters(Row row, size_t filters, size_t left, size_t count, size_t right) {
  for (; filters >= 2; filters -= 2) {
    Run<Kernel, 2, 6>(row, left, count, right);
    row.SkipTwoFilters();
  }
  if (filters != 0) Run<Kernel, 1, 6>(row, left, count, right);
}

void MLASCALL ConvolveDepthwise(const float* input, const float* filter, float* output, size_t stride, size_t dilation,
                                size_t input_stride, size_t height, size_t width, const float* input_base,
                                size_t input_width, size_t dilated_input_width, size_t left, size_t count, size_t right,
                                const float* bias, unsigned flags) {
  const Row row{input, filter, output, stride, dilation, input_stride, 0, 0, height, width,
                input_base, input_width, dilated_input_width, bias, flags};
  const bool dense = stride == kBytes && dilation == kBytes;
  if (dense && width == 3) return Run<Depthwise<3>, 1, 6>(row, left, count, right);
  if (dense && width == 5) return Run<Depthwise<5>, 1, 6>(row, left, count, right);
  Run<Depthwise<0>, 1, 6>(row, left, count, right);
}

// The largest value or the mean of a window; a mean's padding counts or does not.
template <MLAS_POOLING_KIND Kind>
void MLASCALL Pool(const float* input, float* output, size_t stride, size_t dilation, size_t input_stride, size_t size,
                   size_t height, size_t width, const float* input_base, size_t input_width,
                   size_t dilated_input_width, size_t left, size_t count, size_t right) {
  constexpr bool kLargest = Kind == MlasMaximumPooling;
  const Vector start = vdupq_n_f32(kLargest ? std::numeric_limits<float>::lowest() : 0);
  for (size_t pixel = 0; pixel < left + count + right; pixel++) {
    Vector low = start, high = start;
    size_t inside = 0;
    const float *place = Advance(input, pixel * stride), *base = input_base;
    for (size_t y = 0; y < height; y++) {
      for (size_t x = 0; x < width; x++) {
        if (IsInside(place, base, input_width)) {
          low = kLargest ? vmaxq_f32(low, vld1q_f32(place)) : vaddq_f32(low, vld1q_f32(place));
          high = kLargest ? vmaxq_f32(high, vld1q_f32(place + 4)) : vaddq_f32(high, vld1q_f32(place + 4));
          inside++;
        }
        place = Advance(place, dilation);
      }
      place = Advance(place, input_stride);
      base = Advance(base, dilated_input_width);
    }
    if (!kLargest) {
      const Vector all = vdupq_n_f32(static_cast<float>(Kind == MlasAveragePoolingIncludePad ? size : inside));
      low = vdivq_f32(low, all);
      high = vdivq_f32(high, all);
    }
    vst1q_f32(output + kBlock * pixel, low);
    vst1q_f32(output + kBlock * pixel + 4, high);
  }
}

constexpr struct {
  size_t NchwcBlockSize = kBlock;
  MLAS_CONV_FLOAT_KERNEL* ConvNchwFloatKernel = Convolve<Plane>;
  MLAS_CONV_FLOAT_KERNEL* ConvNchwcFloatKernel = Convolve<Blocked>;
  MLAS_CONV_DEPTHWISE_FLOAT_KERNEL* ConvDepthwiseFloatKernel = ConvolveDepthwise;
  MLAS_CONV_POINTWISE_FLOAT_KERNEL* ConvPointwiseFloatKernel = ConvolvePointwise<Blocked>;
  MLAS_CONV_POINTWISE_FLOAT_KERNEL* ConvPointwiseBf16Kernel = ConvPointwiseFloatKernel;  // 1.24 and 1.25 ask for it
  MLAS_POOL_FLOAT_KERNEL* PoolFloatKernel[MlasPoolingKindCount] = {
      Pool<MlasMaximumPooling>, Pool<MlasAveragePoolingExcludePad>, Pool<MlasAveragePoolingIncludePad>};
} kKernels;

}  // namespace

#define MLAS_TARGET_LARCH64
#define GetMlasPlatform() kKernels
#include "snchwc.cpp"

// MLAS's own reorders take four channels of four pixels at a time; they are left what is no multiple of eight.
#define MlasReorderInputNchw ReorderInputOfMlas
#define MlasReorderOutputNchw ReorderOutputOfMlas
void MLASCALL ReorderInputOfMlas(const float*, float*, size_t, size_t);
void MLASCALL ReorderOutputOfMlas(const int64_t*, const float*, float*, MLAS_THREADPOOL*);
#include "reorder.cpp"
#undef MlasReorderInputNchw
#undef MlasReorderOutputNchw

namespace {

constexpr size_t kLittle = 16384;  // values that are not worth a second thread

// Transposes eight rows of eight values, which lie `from_apart` and `to_apart` values apart.
void Transpose(const float* from, size_t from_apart, float* to, size_t to_apart) {
  Vector rows[kBlock][2];
  ORTRIM_UNROLLED (size_t y = 0; y < kBlock; y++)
    ORTRIM_UNROLLED (size_t x = 0; x < 2; x++) rows[y][x] = vld1q_f32(from + y * from_apart + 4 * x);
  const auto pair = [](Vector a, Vector b, bool second) {
    const float64x2_t first = vreinterpretq_f64_f32(a), other = vreinterpretq_f64_f32(b);
    return vreinterpretq_f32_f64(second ? vtrn2q_f64(first, other) : vtrn1q_f64(first, other));
  };
  ORTRIM_UNROLLED (size_t x = 0; x < 2; x++) {
    ORTRIM_UNROLLED (size_t y = 0; y < kBlock; y += 4) {
      const Vector even = vtrn1q_f32(rows[y][x], rows[y + 1][x]), odd = vtrn2q_f32(rows[y][x], rows[y + 1][x]);
      const Vector below = vtrn1q_f32(rows[y + 2][x], rows[y + 3][x]);
      const Vector last = vtrn2q_f32(rows[y + 2][x], rows[y + 3][x]);
      rows[y][x] = pair(even, below, false);
      rows[y + 1][x] = pair(odd, last, false);
      rows[y + 2][x] = pair(even, below, true);
      rows[y + 3][x] = pair(odd, last, true);
    }
  }
  ORTRIM_UNROLLED (size_t y = 0; y < kBlock; y++)
    ORTRIM_UNROLLED (size_t x = 0; x < 2; x++) vst1q_f32(to + y * to_apart + 4 * x, rows[4 * x + y % 4][y / 4]);
}

// Calls back with where eight pixels begin, for all of `size`; the last ones may be some of those before.
template <typename Call>
void ForEachEight(size_t size, Call call) {
  for (size_t pixel = 0; pixel < size; pixel += kBlock) call(std::min(pixel, size - kBlock));
}

}  // namespace

void MLASCALL MlasReorderInputNchw(const float* planes, float* blocks, size_t channels, size_t size) {
  for (; size >= kBlock && channels >= kBlock; channels -= kBlock) {
    ForEachEight(size, [=](size_t pixel) { Transpose(planes + pixel, size, blocks + kBlock * pixel, kBlock); });
    planes += kBlock * size;
    blocks += kBlock * size;
  }
  if (channels != 0) ReorderInputOfMlas(planes, blocks, channels, size);
}

void MLASCALL MlasReorderOutputNchw(const int64_t* shape, const float* blocks, float* planes, MLAS_THREADPOOL* pool) {
  const size_t channels = shape[0] * shape[1], size = shape[2] * shape[3];
  if (size < kBlock || shape[1] % kBlock != 0) return ReorderOutputOfMlas(shape, blocks, planes, pool);
  MlasTrySimpleParallel(channels * size < kLittle ? nullptr : pool, channels / kBlock, [=](ptrdiff_t block) {
    const float* from = blocks + block * kBlock * size;
    float* to = planes + block * kBlock * size;
    ForEachEight(size, [=](size_t pixel) { Transpose(from + kBlock * pixel, kBlock, to + pixel, size); });
  });
}

#include "winograd.h"
