// Multiplies random numbers of 8 bits with random weights of 4 bits as MLAS's kernel is asked to, and compares each product
// with what float64 has, relative to what was added up. Prints how many were compared, or the first that differs. Behind each
// array is a page that nothing may read or write.
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "qnbitgemm.h"
#include "qnbitgemm_kernel_neon.h"

namespace {

std::mt19937 numbers(20261130);
constexpr float kUntouched = 7;

template <class Number>
struct AtPagesEnd {
  using value_type = Number;
  static size_t Room(size_t count) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return (count * sizeof(Number) + page - 1) / page * page;
  }
  Number* allocate(size_t count) {
    const size_t room = Room(count), page = Room(1);
    auto* pages = static_cast<char*>(mmap(nullptr, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (pages == MAP_FAILED || mprotect(pages + room, page, PROT_NONE)) std::abort();
    return reinterpret_cast<Number*>(pages + room) - count;
  }
  void deallocate(Number* values, size_t count) {
    munmap(reinterpret_cast<char*>(values + count) - Room(count), Room(count) + Room(1));
  }
};

template <class Number>
using Array = std::vector<Number, AtPagesEnd<Number>>;

template <class Number>
Array<Number> Values(size_t count) {
  std::uniform_real_distribution<float> range(0.01f, 1);
  Array<Number> values(count);
  for (auto& value : values) {
    if constexpr (sizeof(Number) == 1) value = static_cast<Number>(numbers());
    if constexpr (sizeof(Number) != 1) value = range(numbers);
  }
  return values;
}

struct Product {
  size_t block = numbers() % 4 ? 32 : 64;
  size_t rows = 1 + (numbers() % 2 ? numbers() % 40 : 0), columns = 1 + numbers() % 19;
  size_t count = numbers() % 50 ? 1 + numbers() % 11 : rows == 1 ? 8'000 : 515, stride = columns + numbers() % 3;
  size_t row_bytes = count * (sizeof(float) + block), column_points = (count + 1) / 2;
  bool pointed = numbers() % 2, biased = numbers() % 2;
  Array<std::byte> a = Values<std::byte>(rows * row_bytes), b = Values<std::byte>(columns * count * block / 2);
  Array<std::byte> points = Values<std::byte>(columns * column_points);
  Array<float> scales = Values<float>(columns * count), bias = Values<float>(columns);
  Array<float> own = Values<float>(rows * count), output = Array<float>(rows * stride, kUntouched);

  Product() {
    for (size_t i = 0; i < own.size(); i++) std::memcpy(&a[i * (sizeof(float) + block)], &own[i], sizeof(float));
  }

  void Multiply() {
    for (size_t row = 0; row < rows;)
      row += sqnbitgemm_neon::SQ4BitGemmKernel_CompInt8(
          block, &a[row * row_bytes], b.data(), scales.data(), pointed ? points.data() : nullptr, &output[row * stride],
          rows - row, columns, count * block, count, stride, biased ? bias.data() : nullptr);
  }

  int Number(size_t row, size_t k, size_t i) const {
    return static_cast<int8_t>(a[row * row_bytes + k * (sizeof(float) + block) + sizeof(float) + i]);
  }

  int Weight(size_t column, size_t k, size_t i) const {
    const auto pair = static_cast<int>(b[(column * count + k) * block / 2 + i / 32 * 16 + i % 16]);
    const int point = pointed ? static_cast<int>(points[column * column_points + k / 2]) >> k % 2 * 4 & 15 : 8;
    return (i % 32 < 16 ? pair & 15 : pair >> 4) - point;
  }

  bool IsRight(size_t row, size_t column) const {
    double exact = biased ? bias[column] : 0, added = std::fabs(exact);
    for (size_t k = 0; k < count; k++)
      for (size_t i = 0; i < block; i++) {
        const double scale = static_cast<double>(own[row * count + k]) * scales[column * count + k];
        exact += scale * Number(row, k, i) * Weight(column, k, i);
        added += std::fabs(scale * Number(row, k, i) * Weight(column, k, i));
      }
    return std::fabs(output[row * stride + column] - exact) <= 1e-6 * added;
  }
};

}  // namespace

int main(int, char** words) {
  const int wanted = std::atoi(words[1]);
  for (int each = 0; each < wanted; each++) {
    Product product;
    product.Multiply();
    for (size_t row = 0; row < product.rows; row++)
      for (size_t column = 0; column < product.stride; column++) {
        const bool inside = column < product.columns;
        if (inside ? product.IsRight(row, column) : product.output[row * product.stride + column] == kUntouched) continue;
        std::printf("product %d, row %zu of %zu, column %zu of %zu, %zu blocks of %zu differs\n", each, row, product.rows,
                    column, product.columns, product.count, product.block);
        return 1;
      }
  }
  std::printf("%d are right\n", wanted);
}
