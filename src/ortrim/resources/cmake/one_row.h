// Products of one row with a matrix that MLAS has packed: sixteen columns after the other are multiplied by MLAS's kernels
// with four instructions for eight weights on x86-64 and 1.7 for four on ARM64, these take 1.2 and 1.35. Included ahead of
// sgemm.cpp, whose calls of the kernel lead here. Sums are added up in the same order, so that outputs are equal to the
// last bit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "mlasi.h"
#include "widest_vector.h"

#if defined(__clang__) && (defined(MLAS_TARGET_AMD64) || defined(MLAS_TARGET_ARM64))

namespace ortrim {

constexpr size_t kPanel = 16;  // columns that lie beside each other, of one row of the matrix after the other

#define ORTRIM_UNROLLED _Pragma("clang loop unroll(full)") for

#if defined(MLAS_TARGET_AMD64)

#define ORTRIM_MULTIPLIES [[gnu::target("avx2,fma"), gnu::noinline]]
constexpr int kMost = 4;  // panels whose sums stay in registers
using Vector = float __attribute__((vector_size(32)));

// Adds the products of a row with `kPanels` panels of `depth` rows.
template <int kPanels>
[[gnu::target("avx2,fma"), gnu::always_inline]] inline void AddPanels(const float* row, const float* panels, size_t depth,
                                                                      Vector (&sums)[2 * kPanels]) {
  const size_t apart = kPanel * depth;
#pragma clang loop unroll_count(4)
  for (size_t k = 0; k < depth; k++) {
    const Vector factor = row[k] - Vector{};
    ORTRIM_UNROLLED (int i = 0; i < 2 * kPanels; i++) {
      Vector weights;
      std::memcpy(&weights, panels + i / 2 * apart + k * kPanel + i % 2 * 8, sizeof(weights));
      sums[i] += factor * weights;
    }
  }
}

#else

#define ORTRIM_MULTIPLIES [[gnu::noinline]]
constexpr int kMost = 2;
using Vector = float32x4_t;

template <int kPanels>
[[gnu::always_inline]] inline void AddPanels(const float* row, const float* panels, size_t depth,
                                             Vector (&sums)[4 * kPanels]) {
  const float* at[kPanels];
  ORTRIM_UNROLLED (int p = 0; p < kPanels; p++) at[p] = panels + p * kPanel * depth;
  const auto add = [&](Vector factor) __attribute__((always_inline)) {
    ORTRIM_UNROLLED (int p = 0; p < kPanels; p++) {
      const float32x4x4_t weights = vld1q_f32_x4(at[p]);
      at[p] += kPanel;
      asm("" : "+r"(at[p]));  // otherwise clang takes an addition for each address
      ORTRIM_UNROLLED (int i = 0; i < 4; i++) sums[4 * p + i] += factor * weights.val[i];
    }
  };
  constexpr size_t kTogether = 8;
#pragma clang loop unroll(disable)
  for (; depth >= kTogether; depth -= kTogether, row += kTogether) {
    const float32x4x2_t factors = vld1q_f32_x2(row);
    ORTRIM_UNROLLED (size_t k = 0; k < kTogether; k++) add(factors.val[k / 4][k % 4] - Vector{});
  }
#pragma clang loop unroll(disable)
  for (; depth != 0; depth--) add(*row++ - Vector{});
}

#endif

// Multiplies a row with `kPanels` panels of `depth` rows and stores all their columns.
template <int kPanels>
ORTRIM_MULTIPLIES void MultiplyPanels(const float* row, const float* panels, float* output, size_t depth, float alpha,
                                      bool zero) {
  constexpr int kWidth = sizeof(Vector) / sizeof(float), kVectors = kPanels * kPanel / kWidth;
  Vector sums[kVectors] = {};
  AddPanels<kPanels>(row, panels, depth, sums);
  ORTRIM_UNROLLED (int i = 0; i < kVectors; i++) {
    Vector before = {};
    if (!zero) std::memcpy(&before, output + kWidth * i, sizeof(before));
    before += sums[i] * alpha;
    std::memcpy(output + kWidth * i, &before, sizeof(before));
  }
}

// As a kernel of MLAS's on one row.
inline void MultiplyRow(const float* row, const float* panels, float* output, size_t depth, size_t columns, float alpha,
                        bool zero) {
  for (; columns >= kMost * kPanel; columns -= kMost * kPanel) {
    MultiplyPanels<kMost>(row, panels, output, depth, alpha, zero);
    panels += kMost * kPanel * depth;
    output += kMost * kPanel;
  }
  for (; columns >= kPanel; columns -= kPanel) {
    MultiplyPanels<1>(row, panels, output, depth, alpha, zero);
    panels += kPanel * depth;
    output += kPanel;
  }
  if (columns != 0) {
    float last[kPanel];
    std::copy_n(output, zero ? 0 : columns, last);
    MultiplyPanels<1>(row, panels, last, depth, alpha, zero);
    std::copy_n(last, columns, output);
  }
}

#if defined(MLAS_TARGET_AMD64)

inline const bool has_avx2 = WidestVector() != 0;

// The processor's table, with a kernel before its own.
struct Platform : MLAS_PLATFORM {
  size_t GemmFloatKernel(const float* a, const float* b, float* c, size_t depth, size_t rows, size_t columns, size_t lda,
                         size_t ldc, float alpha, bool zero) const {
    if (rows != 1 || !has_avx2)
      return MLAS_PLATFORM::GemmFloatKernel(a, b, c, depth, rows, columns, lda, ldc, alpha, zero);
    MultiplyRow(a, b, c, depth, columns, alpha, zero);
    return 1;
  }
};

inline const Platform& Table() { return static_cast<const Platform&>(GetMlasPlatform()); }

#else

template <auto kKernel, bool kZero>
size_t Kernel(const float* a, const float* b, float* c, size_t depth, size_t rows, size_t columns, size_t lda, size_t ldc,
              float alpha) {
  if (rows != 1) return kKernel(a, b, c, depth, rows, columns, lda, ldc, alpha);
  MultiplyRow(a, b, c, depth, columns, alpha, kZero);
  return 1;
}

constexpr auto* ZeroKernel = Kernel<&MlasSgemmKernelZero, true>;
constexpr auto* AddKernel = Kernel<&MlasSgemmKernelAdd, false>;

#endif

}  // namespace ortrim

#if defined(MLAS_TARGET_AMD64)
#define GetMlasPlatform ortrim::Table
#else
#define MlasSgemmKernelZero ortrim::ZeroKernel
#define MlasSgemmKernelAdd ortrim::AddKernel
#endif

#endif

namespace ortrim {

// Adds the product of a row with weights that MlasGemm's have packed; false where these lie in several pieces, or several
// threads would share the product.
bool AddProduct(const float* row, const void* weights, float* output, size_t depth, size_t columns) {
  [[maybe_unused]] const auto* panels = static_cast<const float*>(weights);
  if (depth > MLAS_SGEMM_PACKED_STRIDEK || depth * columns >= MLAS_SGEMM_THREAD_COMPLEXITY) return false;
#if defined(__clang__) && defined(MLAS_TARGET_AMD64)
  GetMlasPlatform().GemmFloatKernel(row, panels, output, depth, 1, columns, depth, columns, 1.0f, false);
  return true;
#elif defined(MLAS_TARGET_ARM64) && !defined(USE_KLEIDIAI) // which packs in a way of its own
  MlasSgemmKernelAdd(row, panels, output, depth, 1, columns, depth, columns, 1.0f);
  return true;
#else
  return false;
#endif
}

}  // namespace ortrim
