// Runs the kernels of avx512_convolutions.cc and MLAS's own for AVX2 on the same random convolutions, as snchwc.cpp calls
// them, and compares every byte of what they write. Prints how many were compared; or the first that differs.
#include "avx512_convolutions.cc"

#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

namespace {

std::mt19937 numbers(20261126);

size_t Some(size_t least, size_t most) { return least + numbers() % (most - least + 1); }

std::vector<float> Values(size_t count, float most = 1) {
  std::uniform_real_distribution<float> range(-most, most);
  std::vector<float> values(count);
  for (auto& value : values) value = range(numbers);
  return values;
}

// A convolution along two axes: input and output channels, size, and of both axes kernel, stride, padding before, dilation,
// padding behind.
struct Shape {
  size_t in, out, height, width, kernel, stride, pad, dilation, behind;
  size_t Reach() const { return (kernel - 1) * dilation + 1; }
  size_t Rows() const { return (height + pad + behind - Reach()) / stride + 1; }
  size_t Columns() const { return (width + pad + behind - Reach()) / stride + 1; }
  size_t Left() const { return std::min(Columns(), (pad + stride - 1) / stride); }
  size_t Inside() const {
    const size_t last = width + pad < Reach() ? 0 : (width + pad - Reach()) / stride + 1;
    return last > Left() ? last - Left() : 0;
  }
};

// One row of the input that a row of the output begins with, and how much of the kernel lies within the input.
struct Start {
  ptrdiff_t row;
  size_t height, skipped;
};

Start StartOf(const Shape& shape, size_t row) {
  ptrdiff_t first = static_cast<ptrdiff_t>(row * shape.stride) - static_cast<ptrdiff_t>(shape.pad);
  size_t height = shape.kernel, skipped = 0;
  for (; height > 0 && first < 0; height--, skipped++) first += shape.dilation;
  while (height > 0 && first + static_cast<ptrdiff_t>((height - 1) * shape.dilation) >= static_cast<ptrdiff_t>(shape.height)) height--;
  return {first, height, skipped};
}

void Full(MLAS_CONV_FLOAT_KERNEL* kernel, size_t lanes, const Shape& s, const float* input, const float* filter,
          const float* bias, float* output, unsigned relu) {
  const size_t area = s.kernel * s.kernel, plane = s.Rows() * s.Columns(), bytes = 4 * lanes;
  for (size_t o = 0; o < s.out; o += 4 * kBlock) {
    const size_t filters = std::min<size_t>(4, (s.out - o) / kBlock);
    for (size_t c = 0; c < s.in; c += lanes) {
      const unsigned flags = (c ? kAccumulate : 0u) | (c + lanes >= s.in ? kBias | relu : 0u);
      for (size_t row = 0; row < s.Rows(); row++) {
        const Start start = StartOf(s, row);
        const float* from = input + c * s.height * s.width + lanes * start.row * static_cast<ptrdiff_t>(s.width);
        const float* weights = filter + o * s.in * area + (c * area + start.skipped * lanes * s.kernel) * kBlock;
        const size_t down = bytes * s.dilation * s.width;
        kernel(from - lanes * s.pad, weights, output + o * plane + row * s.Columns() * kBlock, bytes * s.stride,
               bytes * s.dilation, filters, down - s.kernel * bytes * s.dilation, 4 * kBlock * s.in * area,
               4 * kBlock * plane, start.height, s.kernel, from, bytes * s.width, down, s.Left(), s.Inside(),
               s.Columns() - s.Left() - s.Inside(), bias + o, flags);
      }
    }
  }
}

void Depth(MLAS_CONV_DEPTHWISE_FLOAT_KERNEL* kernel, const Shape& s, const float* input, const float* filter,
           const float* bias, float* output, unsigned flags) {
  const size_t bytes = 4 * kBlock;
  for (size_t c = 0; c < s.in; c += kBlock) {
    for (size_t row = 0; row < s.Rows(); row++) {
      const Start start = StartOf(s, row);
      const float* from = input + c * s.height * s.width + kBlock * start.row * static_cast<ptrdiff_t>(s.width);
      const float* weights = filter + c * s.kernel * s.kernel + start.skipped * kBlock * s.kernel;
      const size_t down = bytes * s.dilation * s.width;
      kernel(from - kBlock * s.pad, weights, output + (c * s.Rows() + row * kBlock) * s.Columns(), bytes * s.stride,
             bytes * s.dilation, down - s.kernel * bytes * s.dilation, start.height, s.kernel, from, bytes * s.width,
             down, s.Left(), s.Inside(), s.Columns() - s.Left() - s.Inside(), flags & kBias ? bias + c : nullptr, flags);
    }
  }
}

void Point(MLAS_CONV_POINTWISE_FLOAT_KERNEL* kernel, const Shape& s, const float* input, const float* filter,
           const float* bias, float* output, unsigned relu) {
  constexpr size_t kBatch = 128;
  const size_t plane = s.height * s.width;
  for (size_t o = 0; o < s.out; o += 4 * kBlock) {
    for (size_t c = 0; c < s.in; c += kBatch) {
      const size_t channels = std::min(kBatch, s.in - c);
      const unsigned flags = (c ? kAccumulate : 0u) | (c + channels >= s.in ? kBias | relu : 0u);
      kernel(input + c * plane, filter + o * s.in + c * kBlock, output + o * plane, 4 * kBlock, channels / kBlock,
             std::min<size_t>(4, (s.out - o) / kBlock), 4 * kBlock * plane, 4 * kBlock * s.in, 4 * kBlock * plane, plane,
             bias + o, flags);
    }
  }
}

bool Same(const char* kind, const Shape& s, const std::vector<float>& ours, const std::vector<float>& theirs) {
  if (std::memcmp(ours.data(), theirs.data(), 4 * ours.size()) == 0) return true;
  std::printf("%s differs: %zu to %zu channels, %zu x %zu, kernel %zu, stride %zu, pads %zu and %zu, dilation %zu\n", kind,
              s.in, s.out, s.height, s.width, s.kernel, s.stride, s.pad, s.behind, s.dilation);
  return false;
}

bool Compare() {
  const size_t kernel = Some(1, 5), dilation = Some(1, 2);
  const size_t least = (kernel - 1) * dilation + 1;
  Shape shape{kBlock * Some(1, 20), kBlock * Some(1, 9), Some(least, least + 12), Some(least, least + 40),
              kernel, Some(1, 3), Some(0, kernel / 2 * dilation), dilation, Some(0, kernel / 2 * dilation)};
  const unsigned relu = Some(0, 1) ? kRelu : 0, adds = Some(0, 3) ? 0 : kAccumulate;
  const unsigned biased = Some(0, 1) ? kBias : 0;
  const size_t odd = 3 + 2 * Some(0, 1), most_padding = Some(0, 3) ? odd / 2 : odd;
  Shape picture = shape, point = shape;
  Shape depth = shape;
  if (Some(0, 1))
    depth = {shape.in, 0, Some(5, 9), Some(5, Some(0, 1) ? 10 : 49), odd, 1, Some(0, most_padding), 1,
             Some(0, most_padding)};
  picture.in = Some(1, 4);
  depth.out = depth.in;
  point.kernel = point.stride = point.dilation = 1;
  point.pad = point.behind = 0;
  const float most = Some(0, 7) ? 1 : 1e-25f;  // products that are 0 or -0
  const auto input = Values(shape.in * std::max(shape.height * shape.width, depth.height * depth.width), most);
  const auto filter = Values(shape.in * std::max(shape.out * kernel * kernel, odd * odd), most);
  const auto bias = Values(shape.in + shape.out);
  const auto both = [&](const char* kind, const Shape& s, auto run, auto ours, auto theirs) {
    std::vector<float> first(s.out * s.Rows() * s.Columns() + 2 * kBlock, -7), second = first;  // more, to stay as it is
    run(ours, first.data(), s);
    run(theirs, second.data(), s);
    return Same(kind, s, first, second);
  };
  const auto full = [&](size_t lanes) {
    return [&, lanes](auto* run, float* to, const Shape& s) {
      Full(run, lanes, s, input.data(), filter.data(), bias.data(), to, relu);
    };
  };
  const auto depthwise = [&](auto* run, float* to, const Shape& s) {
    Depth(run, s, input.data(), filter.data(), bias.data(), to, relu | adds | biased);
  };
  const auto pointwise = [&](auto* run, float* to, const Shape& s) {
    Point(run, s, input.data(), filter.data(), bias.data(), to, relu);
  };
  return both("blocks", shape, full(kBlock), &Convolve<Direct<kBlock>>, &MlasConvNchwcFloatKernelFma3) &&
         both("picture", picture, full(1), &Convolve<Direct<1>>, &MlasConvNchwFloatKernelFma3) &&
         both("depthwise", depth, depthwise, &ConvolveDepthwise, &MlasConvDepthwiseFloatKernelFma3) &&
         both("pointwise", point, pointwise, &ConvolvePointwise<Pointwise>, &MlasConvPointwiseFloatKernelFma3);
}

}  // namespace

int main(int count, char** words) {
  others = &MlasConvDepthwiseFloatKernelFma3;
  const int wanted = count > 1 ? std::atoi(words[1]) : 100;
  for (int done = 0; done < wanted; done++)
    if (!Compare()) return 1;
  std::printf("%d of each kind are the same, this processor is %s\n", wanted, IsWide() ? "wide" : "narrow");
  return 0;
}
