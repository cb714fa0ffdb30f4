// Runs the kernels of direct_convolutions.h, or with a second word those of depthwise_convolutions.h, on random convolutions
// and compares what they write with sums in float64.
// Prints how many were compared, and how many were left to MLAS; or the first that differs.
#undef MlasConv  // as upstream's convolve.cpp is to call its own
#include "depthwise_convolutions.h"
#include "direct_convolutions.h"
#undef MlasConv

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

namespace {

std::mt19937 numbers(20261128);
bool left_to_mlas, depthwise;
int folded;

int64_t Some(int64_t least, int64_t most) { return least + static_cast<int64_t>(numbers() % (most - least + 1)); }

std::vector<float> Values(size_t count) {
  std::uniform_real_distribution<float> range(-1, 1);
  std::vector<float> values(count);
  for (auto& value : values) value = range(numbers);
  return values;
}

// Makes the first rows of filters even about their middle and the others odd, as a Fourier transform has them, or all but
// one element; sometimes they are mixed.
void Mirror(std::vector<float>& filters, int64_t length) {
  const int64_t rows = filters.size() / length, even = Some(0, rows);
  const bool mixed = Some(1, 3) == 1;
  for (int64_t r = 0; r < rows; r++) {
    float* row = filters.data() + r * length;
    row[0] = 0;
    for (int64_t i = 1; 2 * i < length; i++) row[length - i] = (mixed ? r % 2 : r >= even) ? -row[i] : row[i];
    if (length > 2) row[length - 1] += Some(-1, 1) * 0x1p-42f;
  }
  if (Some(1, 4) == 1) filters[filters.size() - (Some(0, 1) == 0 ? length : 3)] += 0.1f;
}

struct Convolution {
  size_t dimensions;
  int64_t images, groups, channels, filters;
  int64_t size[2], kernel[2], dilation[2], stride[2], padding[4];
  bool biased, threaded, for_mlas;
  float beta;  // what the outputs there were are multiplied by
  MLAS_ACTIVATION activation;

  int64_t Reach(int axis) const { return (kernel[axis] - 1) * dilation[axis] + 1; }
  int64_t Positions(int axis) const {
    return (size[axis] + padding[axis] + padding[axis + dimensions] - Reach(axis)) / stride[axis] + 1;
  }
};

Convolution Random() {
  Convolution c{};
  c.dimensions = Some(1, 4) == 1 ? 2 : 1;
  const bool framed = Some(1, 3) == 1;  // as sound is cut into frames: one channel, a long kernel
  c.images = Some(1, 3), c.groups = Some(1, 4) == 1 ? Some(2, 3) : 1;
  c.channels = framed ? 1 : Some(1, 40), c.filters = Some(1, 80);
  c.biased = Some(0, 1), c.activation.ActivationKind = Some(0, 1) ? MlasReluActivation : MlasIdentityActivation;
  c.threaded = Some(0, 1);
  for (size_t axis = 0; axis < c.dimensions; axis++) {
    c.kernel[axis] = framed && axis + 1 == c.dimensions ? Some(1, 2) * Some(16, 75) : Some(1, 5);
    if (framed && axis + 1 < c.dimensions) c.kernel[axis] = 1;
    c.dilation[axis] = framed ? 1 : Some(1, 3), c.stride[axis] = Some(1, framed ? 40 : 3);
    if (!framed || Some(1, 4) == 1) c.padding[axis] = Some(0, 2), c.padding[axis + c.dimensions] = Some(0, 2);
    const int64_t more = framed ? 300 : c.dimensions == 2 ? 3 : 12;
    c.size[axis] = framed && axis + 1 < c.dimensions ? 1 : c.Reach(axis) + Some(0, more);
  }
  // What is cut off at one end and added at the other.
  if (framed && Some(1, 6) == 1) c.padding[c.dimensions - 1] = -2, c.padding[2 * c.dimensions - 1] = 2;
  return c;
}

// Makes a convolution one for MLAS, by one respect alone.
void Spoil(Convolution& c) {
  const size_t last = c.dimensions - 1, axis = Some(0, last);
  const bool line = last == 0 || c.kernel[0] == 1;
  c.for_mlas = true;
  switch (Some(0, line ? 5 : 8)) {
    case 0: c.channels = 2; break;
    case 1: c.filters = 2; break;
    case 2: c.beta = 1; break;  // as of a sum that was fused
    case 3: c.stride[0] = c.stride[last] = 3; break;
    case 4:  // A window as wide as the input, or of one place: MLAS multiplies where they lie.
      for (size_t i = 0; i <= last; i++) c.stride[i] = c.dilation[i] = 1, c.padding[i] = c.padding[i + c.dimensions] = 0;
      line && Some(0, 1) ? c.kernel[last] = 1 : c.size[last] = c.kernel[last];
      break;
    case 5:
      if (!line) {
        c.dilation[axis] = 2;
        break;
      }
      // A window so wide that with eight outputs there is no room for its row, of 6144 floats; or there just is.
      c.kernel[last] = 2, c.dilation[last] = 6144 - 8 * c.stride[last] + Some(-3, 3);
      c.padding[last] = c.padding[last + c.dimensions] = 0, c.size[last] = c.Reach(last) + Some(0, 7) * c.stride[last];
      c.for_mlas = c.dilation[last] / c.stride[last] * c.stride[last] + 8 * c.stride[last] > 6144;
      break;
    case 6: c.stride[axis] = 3 - c.stride[axis]; break;
    case 7: c.kernel[axis] = 8 - c.kernel[axis]; break;
    case 8: c.kernel[0] = c.kernel[1] = Some(0, 1) ? 4 : 7; break;
  }
  for (size_t i = 0; i <= last; i++)
    if (c.size[i] < c.Reach(i)) c.size[i] = c.Reach(i) + 1;
}

// Depthwise, of 3x3 or 5x5 or along the last axis; now and then larger than what is copied at once, or spoilt.
Convolution RandomDepthwise() {
  Convolution c{};
  const bool line = Some(1, 3) == 1, large = Some(1, line ? 3 : 8) == 1;
  c.dimensions = line ? Some(1, 2) : 2;
  c.images = Some(1, 3), c.groups = large ? Some(1, 3) : Some(1, 20), c.channels = c.filters = 1;
  c.biased = Some(0, 1), c.threaded = Some(0, 1);
  constexpr MLAS_ACTIVATION_KIND kinds[] = {MlasIdentityActivation, MlasReluActivation, MlasClipActivation, MlasLeakyReluActivation};
  c.activation.ActivationKind = kinds[Some(0, 3)];
  c.activation.Parameters.Clip.minimum = -0.25f, c.activation.Parameters.Clip.maximum = 0.5f;
  const int64_t square = Some(0, 1) ? 3 : 5, stride = Some(1, 2);
  for (size_t axis = 0; axis < c.dimensions; axis++) {
    const bool last = axis + 1 == c.dimensions;
    c.kernel[axis] = !line ? square : last ? Some(1, 11) : 1;
    c.dilation[axis] = line ? Some(1, 3) : 1;
    c.stride[axis] = !line ? stride : !last ? Some(1, 3) : c.kernel[axis] == 1 ? 2 : Some(1, 2);
    if (Some(1, 3) > 1) c.padding[axis] = Some(0, c.kernel[axis] - 1), c.padding[axis + c.dimensions] = Some(0, c.kernel[axis] - 1);
    if (last && Some(1, 8) == 1) c.padding[axis] = -1;
    c.size[axis] = c.Reach(axis) + 1 + Some(0, !large || (line && !last) ? 30 : line ? 6000 : 200);
  }
  if (Some(1, 3) == 1) Spoil(c);
  return c;
}

// Computes a convolution by our kernels; empty when these leave it to MLAS.
std::vector<float> Ours(const Convolution& c, const std::vector<float>& input, const std::vector<float>& filter,
                        const std::vector<float>& bias, size_t count) {
  const int64_t positions[] = {c.Positions(0), c.dimensions == 2 ? c.Positions(1) : 1};
  MLAS_CONV_PARAMETERS parameters{};
  size_t working;
  MlasConvPrepare(&parameters, c.dimensions, c.images, c.groups, c.channels, c.size, c.kernel, c.dilation, c.padding,
                  c.stride, positions, c.filters, &c.activation, &working, c.beta, nullptr);
  std::vector<float> buffer(working), output(count, std::numeric_limits<float>::quiet_NaN());
  onnxruntime::concurrency::ThreadPool pool{Some(2, 9), output};
  left_to_mlas = false;
  ortrim::Mirrored mirrored;
  if (c.groups * c.channels * (c.dimensions == 2 ? c.kernel[0] : 1) == 1)
    mirrored = ortrim::FindMirrored(filter.data(), c.filters, c.kernel[c.dimensions - 1]);
  folded += mirrored.all;
  const auto convolve = [&](auto kernels, auto... known) {
    kernels(known..., &parameters, input.data(), filter.data(), c.biased ? bias.data() : nullptr, buffer.data(),
            output.data(), c.threaded ? reinterpret_cast<MLAS_THREADPOOL*>(&pool) : nullptr);
  };
  depthwise ? convolve(ortrim::depthwise::Convolve) : convolve(ortrim::Convolve, mirrored);
  return left_to_mlas ? std::vector<float>{} : output;
}

// The sum of one output in float64, and of what is added the sizes.
struct Exact {
  double sum = 0, sizes = 0;
  void Add(double value) { sum += value, sizes += std::fabs(value); }
};

Exact ExactAt(const Convolution& c, const float* input, const float* filter, int64_t row, int64_t column) {
  const int x_axis = static_cast<int>(c.dimensions) - 1;
  const int64_t height = x_axis ? c.size[0] : 1, kernel_height = x_axis ? c.kernel[0] : 1;
  Exact exact;
  for (int64_t channel = 0; channel < c.channels; channel++)
    for (int64_t i = 0; i < kernel_height; i++)
      for (int64_t j = 0; j < c.kernel[x_axis]; j++, filter++) {
        const int64_t y = x_axis ? row * c.stride[0] - c.padding[0] + i * c.dilation[0] : 0;
        const int64_t x = column * c.stride[x_axis] - c.padding[x_axis] + j * c.dilation[x_axis];
        if (y >= 0 && y < height && x >= 0 && x < c.size[x_axis])
          exact.Add(double(*filter) * input[(channel * height + y) * c.size[x_axis] + x]);
      }
  return exact;
}

template <typename Number>
Number Activated(const MLAS_ACTIVATION& activation, Number sum) {
  const auto& clip = activation.Parameters.Clip;
  switch (activation.ActivationKind) {
    case MlasReluActivation: return std::fmax(sum, Number{0});
    case MlasClipActivation: return std::fmin(std::fmax(sum, Number{clip.minimum}), Number{clip.maximum});
    case MlasLeakyReluActivation: return sum < 0 ? sum * activation.Parameters.LeakyRelu.alpha : sum;
    default: return sum;
  }
}

bool Same(const Convolution& c, int number) {
  const int x_axis = static_cast<int>(c.dimensions) - 1;
  const int64_t rows = x_axis ? c.Positions(0) : 1, columns = c.Positions(x_axis);
  const int64_t plane = c.size[0] * (x_axis ? c.size[1] : 1), length = c.channels * c.kernel[0] * (x_axis ? c.kernel[1] : 1);
  const auto input = Values(c.images * c.groups * c.channels * plane), bias = Values(c.groups * c.filters);
  auto filter = Values(c.groups * c.filters * length);
  if (c.channels == 1 && !depthwise) Mirror(filter, length);
  const auto output = Ours(c, input, filter, bias, c.images * c.groups * c.filters * rows * columns);
  if (depthwise && left_to_mlas != c.for_mlas) {
    std::printf("convolution %d was %s to MLAS\n", number, left_to_mlas ? "left" : "not left");
    return false;
  }
  const float* value = output.data();
  for (int64_t image = 0; image < c.images && !left_to_mlas; image++)
    for (int64_t f = 0; f < c.groups * c.filters; f++)
      for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < columns; column++, value++) {
          const float* from = input.data() + (image * c.groups + f / c.filters) * c.channels * plane;
          Exact exact = ExactAt(c, from, filter.data() + f * length, row, column);
          if (c.biased) exact.Add(bias[f]);
          const double right = Activated(c.activation, exact.sum);
          if (std::fabs(*value - right) <= 1e-6 * exact.sizes + 1e-7) continue;
          std::printf("convolution %d, filter %d, position %d, %d: %.9g instead of %.9g\n", number, int(f), int(row),
                      int(column), *value, right);
          return false;
        }
  return true;
}

}  // namespace

// What our kernels leave to MLAS ends here, and its activations without a bias.
void MLASCALL MlasConv(const MLAS_CONV_PARAMETERS*, const float*, const float*, const float*, float*, float*,
                       MLAS_THREADPOOL*) {
  left_to_mlas = true;
}

void MLASCALL MlasActivation(const MLAS_ACTIVATION* activation, float* values, const float* bias, size_t rows,
                             size_t count, size_t apart) {
  if (bias != nullptr) std::abort();
  for (; rows != 0; rows--, values += apart)
    for (size_t i = 0; i < count; i++) values[i] = Activated(*activation, values[i]);
}

int main(int count, char** words) {
  const int wanted = std::atoi(words[1]);
  depthwise = count > 2;
  int compared = 0, left = 0;
  while (compared < wanted) {
    if (!Same(depthwise ? RandomDepthwise() : Random(), compared + left)) return 1;
    ++(left_to_mlas ? left : compared);
  }
  std::printf("%d are right, %d of them folded, %d were left to MLAS\n", compared, folded, left);
  return !depthwise && folded < wanted / 20;
}
