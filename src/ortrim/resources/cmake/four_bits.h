// Products of numbers that are rounded to 8 bits with weights of 4 bits in blocks of 32, on ARM64 with the dot product, in
// place of MLAS's for such blocks, which take 9.9 to 20.5 instructions for a row's and a column's block: these take 4.9 to
// 13.6. Four columns share what is loaded of a row, and a vector the sums of all four. Of several rows, weights are turned
// around once, so that a lane of numbers is multiplied with four columns. Sums of integers are exact: outputs differ from
// MLAS's by the order of sums of floats alone. Included ahead of sqnbitgemm_kernel_neon_int8.cpp, whose kernel has the other
// sizes of blocks.
#pragma once

#include <arm_neon.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "qnbitgemm.h"
#include "qnbitgemm_kernel_neon.h"
#include "sqnbitgemm_q8_block.h"

#if defined(__clang__)

namespace ortrim {
namespace {

#define ORTRIM_UNROLLED _Pragma("clang loop unroll(full)") for

constexpr size_t kBlock = 32, kBlockBytes = kBlock / 2, kMostBlocks = 512, kMostRows = 32;

struct Weights {
  const std::byte* blocks;  // of one column after the other: the low halves of bytes are the first 16, the high ones the rest
  const float* scales;
  const std::byte* points;  // zero points, two in a byte; null where all are 8
  size_t count;             // blocks in a column

  Weights From(size_t column) const {
    const size_t before = column * count;
    return {blocks + before * kBlockBytes, scales + before, points ? points + column * ((count + 1) / 2) : nullptr, count};
  }
};

// Turns four vectors around: what the first lanes have, then what the second ones have.
template <class Vector>
inline void Transpose(Vector (&v)[4]) {
  const Vector a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5), b = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
  const Vector c = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7), d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
  v[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5), v[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
  v[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5), v[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
}

// Four columns, of which those from `columns` on are the last one again.
struct Columns {
  const std::byte *blocks[4], *points[4];
  const float* scales[4];

  Columns(Weights own, size_t columns) {
    ORTRIM_UNROLLED (size_t i = 0; i < 4; i++) {
      blocks[i] = own.blocks, scales[i] = own.scales, points[i] = own.points;
      if (i + 1 < columns) own = own.From(1);
    }
  }

  // The halves of a column's block, still with their zero point.
  void Load(int column, size_t block, int8x16_t (&halves)[2]) const {
    const uint8x16_t bytes = vld1q_u8(reinterpret_cast<const uint8_t*>(blocks[column] + block * kBlockBytes));
    halves[0] = vreinterpretq_s8_u8(bytes & vdupq_n_u8(15)), halves[1] = vreinterpretq_s8_u8(vshrq_n_u8(bytes, 4));
  }

  // The zero points of a column's blocks from `first` on, which is even where they are several.
  int32x4_t Points(int column, size_t first, int together) const {
    uint16_t pair = 0;
    std::memcpy(&pair, points[column] + first / 2, together == 4 ? 2 : 1);
    const int32x4_t shifts = {0, -4, -8, -12};
    return vreinterpretq_s32_u32(vshlq_u32(vdupq_n_u32(uint32_t{pair} >> (first % 2 * 4)), shifts) & vdupq_n_u32(15));
  }
};

inline void Store(float32x4_t sums, const float* bias, float* output, size_t columns) {
  if (columns == 4) {
    vst1q_f32(output, bias ? sums + vld1q_f32(bias) : sums);
  } else {
    float all[4];
    vst1q_f32(all, sums);
    for (size_t i = 0; i < columns; i++) output[i] = bias ? all[i] + bias[i] : all[i];
  }
}

// Multiplies a row; `less` has what the numbers of each block add up to, times -8, or -1 where there are zero points.
template <bool kPoints>
void MultiplyRow(const std::byte* row, const int32x4_t* less, const Columns& from, size_t count, const float* bias,
                 float* output, size_t columns) {
  float32x4_t sums = {};
  const auto add = [&](size_t first, auto together) __attribute__((always_inline)) {
    float32x4_t scales[4];
    int32x4_t points[4];
    ORTRIM_UNROLLED (int i = 0; i < 4; i++) {
      scales[i] = together == 4 ? vld1q_f32(from.scales[i] + first) : vdupq_n_f32(from.scales[i][first]);
      if constexpr (kPoints) points[i] = from.Points(i, first, together);
    }
    Transpose(scales);
    ORTRIM_UNROLLED (int k = 0; k < together; k++) {
      const std::byte* block = row + (first + k) * Q8BlkSize(kBlock);
      const int8x16_t low = vld1q_s8(Q8BlkData(block)), high = vld1q_s8(Q8BlkData(block) + 16);
      int32x4_t parts[4];
      ORTRIM_UNROLLED (int i = 0; i < 4; i++) {
        int8x16_t halves[2];
        from.Load(i, first + k, halves);
        parts[i] = kPoints ? less[first + k] * vdupq_n_s32(points[i][k]) : less[first + k];
        parts[i] = vdotq_s32(vdotq_s32(parts[i], low, halves[0]), high, halves[1]);
      }
      const int32x4_t sum = vpaddq_s32(vpaddq_s32(parts[0], parts[1]), vpaddq_s32(parts[2], parts[3]));
      sums = vfmaq_f32(sums, vcvtq_f32_s32(sum), scales[k] * vdupq_n_f32(Q8BlkScale(block)));
    }
  };
  size_t block = 0;
#pragma clang loop unroll(disable)
  for (; block + 4 <= count; block += 4) add(block, std::integral_constant<int, 4>());
#pragma clang loop unroll(disable)
  for (; block < count; block++) add(block, std::integral_constant<int, 1>());
  Store(sums, bias, output, columns);
}

// Multiplies up to `kMostRows` rows.
template <bool kPoints>
void MultiplyRows(const std::byte* rows, size_t row_count, const Columns& from, size_t count, const float* bias, float* output,
                  size_t columns, size_t stride) {
  float32x4_t sums[kMostRows] = {};
  const auto add = [&](size_t first, auto together) __attribute__((always_inline)) {
    float32x4_t scales[together];
    int32x4_t turned[together][2][4];
    ORTRIM_UNROLLED (int i = 0; i < 4; i++) {
      const int32x4_t points = kPoints ? from.Points(i, first, together) : vdupq_n_s32(8);
      ORTRIM_UNROLLED (int k = 0; k < together; k++) {
        int8x16_t halves[2];
        from.Load(i, first + k, halves);
        const int8x16_t point = vdupq_n_s8(vreinterpretq_s8_s32(points)[4 * k]);
        ORTRIM_UNROLLED (int h = 0; h < 2; h++) turned[k][h][i] = vreinterpretq_s32_s8(halves[h] - point);
        scales[k][i] = from.scales[i][first + k];
      }
    }
    ORTRIM_UNROLLED (int k = 0; k < together; k++) Transpose(turned[k][0]), Transpose(turned[k][1]);
    const std::byte* block = rows + first * Q8BlkSize(kBlock);
#pragma clang loop unroll(disable)
    for (size_t r = 0; r < row_count; r++, block += count * Q8BlkSize(kBlock)) {
      ORTRIM_UNROLLED (int k = 0; k < together; k++) {
        const std::byte* own = block + k * Q8BlkSize(kBlock);
        int32x4_t sum = {};
        ORTRIM_UNROLLED (int h = 0; h < 2; h++) {
          const int32x4_t numbers = vreinterpretq_s32_s8(vld1q_s8(Q8BlkData(own) + h * 16));
          ORTRIM_UNROLLED (int i = 0; i < 4; i++) {
            const int8x16_t four = vreinterpretq_s8_s32(vdupq_n_s32(numbers[i]));
            sum = vdotq_s32(sum, vreinterpretq_s8_s32(turned[k][h][i]), four);
          }
        }
        sums[r] = vfmaq_f32(sums[r], vcvtq_f32_s32(sum), scales[k] * vdupq_n_f32(Q8BlkScale(own)));
      }
    }
  };
  size_t block = 0;
#pragma clang loop unroll(disable)
  for (; block + 2 <= count; block += 2) add(block, std::integral_constant<int, 2>());
  if (block < count) add(block, std::integral_constant<int, 1>());
  for (size_t r = 0; r < row_count; r++) Store(sums[r], bias, output + r * stride, columns);
}

template <bool kPoints>
void Multiply(const std::byte* rows, const Weights& weights, const float* bias, float* output, size_t row_count,
              size_t columns, size_t stride) {
  const size_t count = weights.count;
  int32x4_t less[kMostBlocks];
  const bool alone = row_count == 1 && count <= kMostBlocks;
  if (alone) {
    const int8x16_t factors = vdupq_n_s8(kPoints ? -1 : -8);
    for (size_t k = 0; k < count; k++) {
      const int8_t* numbers = Q8BlkData(rows + k * Q8BlkSize(kBlock));
      less[k] = vdotq_s32(vdotq_s32(int32x4_t{}, vld1q_s8(numbers), factors), vld1q_s8(numbers + 16), factors);
    }
  }
  for (size_t i = 0; i < columns; i += 4) {
    const size_t own = std::min<size_t>(4, columns - i);
    const Columns from(weights.From(i), own);
    const float* added = bias ? bias + i : nullptr;
    if (alone) {
      MultiplyRow<kPoints>(rows, less, from, count, added, output + i, own);
    } else {
      MultiplyRows<kPoints>(rows, row_count, from, count, added, output + i, own, stride);
    }
  }
}

}  // namespace
}  // namespace ortrim

namespace sqnbitgemm_neon {

size_t OtherBlocks(size_t, const std::byte*, const std::byte*, const float*, const std::byte*, float*, size_t, size_t, size_t,
                   size_t, size_t, const float*);

size_t SQ4BitGemmKernel_CompInt8(size_t block, const std::byte* rows, const std::byte* blocks, const float* scales,
                                 const std::byte* points, float* output, size_t row_count, size_t columns, size_t depth,
                                 size_t count, size_t stride, const float* bias) {
  if (block != ortrim::kBlock)
    return OtherBlocks(block, rows, blocks, scales, points, output, row_count, columns, depth, count, stride, bias);
  const ortrim::Weights weights{blocks, scales, points, count};
  const size_t taken = std::min(row_count, ortrim::kMostRows);  // the caller comes back with the others
  (points ? ortrim::Multiply<true> : ortrim::Multiply<false>)(rows, weights, bias, output, taken, columns, stride);
  return taken;
}

}  // namespace sqnbitgemm_neon

#define SQ4BitGemmKernel_CompInt8 OtherBlocks

#endif
