// Products of one row with a matrix that MLAS has packed, each weight read once: sixteen columns after the other are
// multiplied by MLAS's kernels with four instructions for eight weights, these take 1.2. Included ahead of sgemm.cpp,
// whose calls of the kernel in the processor's table lead here. Sums are added up in the same order, so that outputs are
// equal to the last bit. ARM64 has neon_products.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "mlasi.h"
#include "widest_vector.h"

#if defined(__clang__) && defined(MLAS_TARGET_AMD64)

namespace ortrim {

constexpr size_t kPanel = 16;  // columns that lie beside each other, of one row of the matrix after the other

using Eight = float __attribute__((vector_size(32)));

// Multiplies a row with `kPanels` panels of `depth` rows and stores all their columns.
template <int kPanels>
[[gnu::target("avx2,fma"), gnu::noinline]] void MultiplyPanels(const float* row, const float* panels, float* output,
                                                               size_t depth, float alpha, bool zero) {
  Eight sums[2 * kPanels] = {};
  const size_t apart = kPanel * depth;
#pragma clang loop unroll_count(4)
  for (size_t k = 0; k < depth; k++) {
    const Eight factor = row[k] - Eight{};
#pragma clang loop unroll(full)
    for (int i = 0; i < 2 * kPanels; i++) {
      Eight weights;
      std::memcpy(&weights, panels + i / 2 * apart + k * kPanel + i % 2 * 8, sizeof(weights));
      sums[i] += factor * weights;
    }
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < 2 * kPanels; i++) {
    Eight before = {};
    if (!zero) std::memcpy(&before, output + 8 * i, sizeof(before));
    before += sums[i] * alpha;
    std::memcpy(output + 8 * i, &before, sizeof(before));
  }
}

// As a kernel of MLAS's on one row.
inline void MultiplyRow(const float* row, const float* panels, float* output, size_t depth, size_t columns, float alpha,
                        bool zero) {
  constexpr int kMost = 4;  // whose sums stay in registers
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

}  // namespace ortrim

#define GetMlasPlatform ortrim::Table

#elif defined(__clang__) && defined(MLAS_TARGET_ARM64)
#include "neon_products.h"
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
