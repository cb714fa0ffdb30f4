// Runs random convolutions, pooling and reorders of neon_convolutions.cc, as ONNX Runtime's operators call MLAS, and
// computes the same in float64; on x64 those of winograd_avx2.cc alone. Prints how many of each kind were compared; or
// the first that differs by more than rounding does.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#if defined(__x86_64__)
#include <mlasi.h>
__asm__(".globl MlasGemmQuantDispatchDefault\nMlasGemmQuantDispatchDefault = 0");  // which another entry names
MLAS_PLATFORM::MLAS_PLATFORM() : ConvPointwiseFloatKernel(MlasConvPointwiseFloatKernelFma3), NchwcBlockSize(8) {}
#else
#include "mlas.h"
#endif

namespace ortrim {
// That of winograd.h, and where it can be called.
bool ConvolveTiled(std::atomic<const float*>&, const int64_t*, const int64_t*, const int64_t*, const int64_t*,
                   const int64_t*, const int64_t*, size_t, const float*, const float*, const float*, float*,
                   const MLAS_ACTIVATION*, bool, MLAS_THREADPOOL*, ...);
#if defined(__x86_64__)
bool HasTransforms();
constexpr int kFirst = 5;
#else
constexpr bool HasTransforms() { return true; }
constexpr int kFirst = 0;
#endif
}  // namespace ortrim

thread_local size_t ThreadedBufSize = 0;
thread_local std::unique_ptr<uint8_t, decltype(&free)> ThreadedBufHolder(nullptr, &free);

// Stands in for any activation but ReLU.
void MLASCALL MlasActivation(const MLAS_ACTIVATION*, float* values, const float*, size_t rows, size_t count, size_t) {
  for (size_t i = 0; i < rows * count; i++) values[i] = -values[i];
}

namespace {

constexpr size_t kBlock = 8;
std::mt19937 numbers(20261128);

size_t Some(size_t least, size_t most) { return least + numbers() % (most - least + 1); }

std::vector<float> Values(size_t count) {
  std::uniform_real_distribution<float> range(-1, 1);
  std::vector<float> values(count);
  for (auto& value : values) value = range(numbers);
  return values;
}

enum Kind { kBlocks, kPicture, kDepthwise, kPointwise, kPooling, kTiles, kKinds };
constexpr const char* kNames[] = {"blocks", "picture", "depthwise", "pointwise", "pooling", "tiles"};

// One axis of a convolution or of pooling: sizes, and the padding before and behind.
struct Axis {
  int64_t size, kernel, stride, dilation, before, behind;
  int64_t Reach() const { return (kernel - 1) * dilation + 1; }
  int64_t Outputs() const { return (size + before + behind - Reach()) / stride + 1; }
};

struct Shape {
  int64_t batch, groups, in, out;
  Axis y, x;
  int64_t Of(int64_t n, int64_t channel, int64_t row, int64_t column) const {  // in the input, as planes
    return ((n * in + channel) * y.size + row) * x.size + column;
  }
};

Axis SomeAxis(size_t longest) {
  const int64_t kernel = Some(1, 5), dilation = Some(1, 2), reach = (kernel - 1) * dilation;
  const int64_t stride = Some(1, 3), size = reach + Some(1, longest);
  return {size, kernel, stride, dilation, static_cast<int64_t>(Some(0, reach)), static_cast<int64_t>(Some(0, reach))};
}

Shape SomeShape(Kind kind) {
  Shape s{static_cast<int64_t>(Some(1, 2)), 1, static_cast<int64_t>(kBlock * Some(1, 20)),
          static_cast<int64_t>(kBlock * Some(1, 9)), SomeAxis(6), SomeAxis(20)};
  if (kind == kTiles) {
    s.in = kBlock * Some(1, 10), s.x = SomeAxis(6);
    const int64_t before = Some(0, 3), behind = Some(0, 3), size = Some(5, 40);
    (Some(0, 1) ? s.x : s.y) = {size, Some(0, 1) ? 3 : 5, 1, 1, before, behind};
  }
  if ((kind == kBlocks || kind == kTiles) && Some(0, 2) == 0) s.groups = 2, s.in *= 2, s.out *= 2;
  if (kind == kPicture) s.in = Some(1, kBlock - 1);
  if (kind == kPointwise) s.y = {s.y.size, 1, s.y.stride, 1, 0, 0}, s.x = {s.x.size, 1, s.x.stride, 1, 0, 0};
  if (kind == kDepthwise || kind == kPooling) s.out = s.in;
  if (kind == kDepthwise) s.groups = s.in;
  if (kind == kDepthwise && Some(0, 1)) s.x.stride = s.x.dilation = 1;  // which has kernels of its own
  return s;
}

// Returns planes of channels as blocks; filters have as many planes as pictures would.
std::vector<float> Blocked(const std::vector<float>& planes, int64_t channels, size_t area) {
  std::vector<float> blocks(planes.size());
  for (size_t i = 0; i < planes.size(); i++) {
    const size_t pixel = i % area, channel = i / area % channels, image = i / area / channels;
    blocks[((image * channels / kBlock + channel / kBlock) * area + pixel) * kBlock + channel % kBlock] = planes[i];
  }
  return blocks;
}

// Returns filters as MLAS wants them: blocks of outputs around blocks of inputs, or around single ones.
std::vector<float> Filters(const std::vector<float>& filters, int64_t inputs, size_t area) {
  std::vector<float> blocks(filters.size());
  for (size_t i = 0; i < filters.size(); i++) {
    const size_t place = i % area, in = i / area % inputs, out = i / area / inputs;
    const size_t lanes = inputs % kBlock ? 1 : kBlock, block = (out / kBlock * inputs + in) / lanes;
    blocks[((block * area + place) * lanes + in % lanes) * kBlock + out % kBlock] = filters[i];
  }
  return blocks;
}

// Calls back with each place of the input that an output's window has, and with the place in the window.
template <typename Call>
void Window(const Shape& s, int64_t row, int64_t column, Call call) {
  for (int64_t i = 0; i < s.y.kernel * s.x.kernel; i++) {
    const int64_t y = row * s.y.stride + i / s.x.kernel * s.y.dilation - s.y.before;
    const int64_t x = column * s.x.stride + i % s.x.kernel * s.x.dilation - s.x.before;
    if (y >= 0 && y < s.y.size && x >= 0 && x < s.x.size) call(y, x, i);
  }
}

bool Compare(Kind kind) {
  const Shape s = SomeShape(kind);
  const int64_t rows = s.y.Outputs(), columns = s.x.Outputs(), inputs = s.in / s.groups, area = s.y.kernel * s.x.kernel;
  const auto input = Values(s.batch * s.in * s.y.size * s.x.size), filter = Values(s.out * inputs * area);
  const auto bias = Values(s.out), before = Values(s.batch * s.out * rows * columns);
  const bool biased = Some(0, 1), relu = Some(0, 1), adds = Some(0, 3) == 0;
  const bool other = kind == kTiles && !relu && Some(0, 1);
  const auto pool = static_cast<MLAS_POOLING_KIND>(Some(0, MlasPoolingKindCount - 1));

  int64_t from[] = {s.batch, s.in, s.y.size, s.x.size};
  const int64_t to[] = {s.batch, s.out, rows, columns};
  const int64_t kernel[] = {s.y.kernel, s.x.kernel}, dilation[] = {s.y.dilation, s.x.dilation};
  const int64_t stride[] = {s.y.stride, s.x.stride};
  const int64_t padding[] = {s.y.before, s.x.before, s.y.behind, s.x.behind};
  const auto laid_out = kind == kPicture ? input : Blocked(input, s.in, s.y.size * s.x.size);
  auto output = Blocked(before, s.out, rows * columns);
  MLAS_ACTIVATION activation{};
  activation.ActivationKind = relu ? MlasReluActivation : other ? MlasTanhActivation : MlasIdentityActivation;
  const auto filters = Filters(filter, inputs, area);
  const auto convolve = [&](auto function, auto&... kept) {
    return function(kept..., from, kernel, dilation, padding, stride, to, s.groups, laid_out.data(), filters.data(),
                    biased ? bias.data() : nullptr, output.data(), &activation, !adds, nullptr);
  };
  if (kind == kPooling) {
    MlasNchwcPool(pool, from, kernel, dilation, padding, stride, to, laid_out.data(), output.data(), nullptr);
  } else if (kind == kTiles) {
    std::atomic<const float*> kept{nullptr};
    from[0] = 0;
    if (convolve(ortrim::ConvolveTiled, kept)) return std::printf("tiles of no image differ\n"), false;
    from[0] = s.batch;
    if (!convolve(ortrim::ConvolveTiled, kept)) return Compare(kind);  // another one, which is faster so
    delete[] kept.load();
  } else {
    convolve(MlasNchwcConv);
  }

  const double least = kind == kPooling ? 1e-5 : 3e-7 * (inputs * area + 4);
  for (size_t i = 0; i < before.size(); i++) {
    const int64_t column = i % columns, row = i / columns % rows, channel = i / columns / rows % s.out;
    const int64_t n = i / columns / rows / s.out, first = channel / (s.out / s.groups) * inputs;
    double wanted = (biased ? bias[channel] : 0) + (adds ? before[i] : 0), sum = 0, largest = -2;
    int64_t inside = 0;
    Window(s, row, column, [&](int64_t y, int64_t x, int64_t place) {
      for (int64_t c = 0; kind != kPooling && c < inputs; c++)
        wanted += static_cast<double>(input[s.Of(n, first + c, y, x)]) * filter[(channel * inputs + c) * area + place];
      const double value = input[s.Of(n, channel % s.in, y, x)];
      sum += value, largest = std::max(largest, value), inside++;
    });
    if (relu) wanted = std::max(wanted, 0.0);
    if (other) wanted = -wanted;
    if (kind == kPooling && inside == 0) continue;  // what MLAS says of a window in the padding, nothing rests on
    const double mean = sum / (pool == MlasAveragePoolingIncludePad ? area : inside);
    if (kind == kPooling) wanted = pool == MlasMaximumPooling ? largest : mean;
    const int64_t block = n * s.out / kBlock + channel / kBlock, pixel = row * columns + column;
    const double got = output[(block * rows * columns + pixel) * kBlock + channel % kBlock];
    if (std::fabs(got - wanted) <= least) continue;
    std::printf("%s differs: %g is not %g; %lld to %lld channels in %lld groups, %lld x %lld, kernel %lld x %lld\n",
                kNames[kind], got, wanted, (long long)s.in, (long long)s.out, (long long)s.groups, (long long)s.y.size,
                (long long)s.x.size, (long long)s.y.kernel, (long long)s.x.kernel);
    return false;
  }
  return true;
}

// Whether planes of channels become blocks and planes again, also where no block or tile divides them.
bool CompareReorders() {
  const size_t images = Some(1, 2), channels = 4 * Some(1, 10), area = Some(1, 60);
  const size_t blocks = (channels + kBlock - 1) / kBlock;
  const auto planes = Values(images * channels * area);
  std::vector<float> laid_out(images * blocks * kBlock * area), again(planes.size());
  for (size_t image = 0; image < images; image++) {
    const float* from = planes.data() + image * channels * area;
    float* to = laid_out.data() + image * blocks * kBlock * area;
    MlasReorderInputNchw(from, to, channels, area);
    for (size_t i = 0; i < channels * area; i++)
      if (to[(i / area / kBlock * area + i % area) * kBlock + i / area % kBlock] != from[i]) return false;
  }
  const int64_t shape[] = {static_cast<int64_t>(images), static_cast<int64_t>(channels), 1, static_cast<int64_t>(area)};
  MlasReorderOutputNchw(shape, laid_out.data(), again.data(), nullptr);
  return again == planes;
}

}  // namespace

int main(int, char** words) {
  const int wanted = std::atoi(words[1]);
  if (!ortrim::HasTransforms()) return std::printf("no transforms\n"), 2;
  for (int done = 0; done < wanted; done++) {
    for (int kind = ortrim::kFirst; kind < kKinds; kind++)
      if (!Compare(static_cast<Kind>(kind))) return 1;
    if (!CompareReorders()) {
      std::printf("a reorder differs\n");
      return 1;
    }
  }
  std::printf("%d of each kind are the same\n", wanted);
  return 0;
}
