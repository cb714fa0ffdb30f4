// Convolutions of three or five places in a row with fewer products: Winograd's minimal filtering along one axis, F(4,3)
// and F(4,5), in NCHWc layout. Included behind a processor's pointwise kernel, which multiplies what is transformed here.
//
// Four outputs in a row, a tile, take six or eight products of transformed inputs with transformed filters, where twelve
// or twenty would be taken; places along the other axis are summed up like channels. Polynomials are evaluated at 0, at
// infinity, and at pairs of +p and -p, which have the even and the odd half of a sum in common.
#pragma once

#include <algorithm>
#include <atomic>

namespace {

using Eight = float __attribute__((vector_size(kBytes)));

Eight Load(const float* from) {
  Eight vector;
  __builtin_memcpy(&vector, from, sizeof(vector));
  return vector;
}

void Store(float* to, const Eight& vector) { __builtin_memcpy(to, &vector, sizeof(vector)); }

// The points p of pairs; small ones whose squares' product is about 1 round least.
constexpr float kAt[] = {0.5f, 2, 1};

// The coefficients in x of the product of x - p^2 for all pairs but one; the last one, for all of them.
template <int Pairs>
struct Polynomials {
  float of[Pairs + 1][Pairs + 1] = {};
  constexpr Polynomials() {
    for (int but = 0; but <= Pairs; but++) {
      of[but][0] = 1;
      for (int pair = 0; pair < Pairs; pair++) {
        if (pair == but) continue;
        for (int k = Pairs; k >= 0; k--) of[but][k] = (k == 0 ? 0 : of[but][k - 1]) - kAt[pair] * kAt[pair] * of[but][k];
      }
    }
  }
};

// The transforms for a number of places.
template <int Places>
struct Winograd {
  static constexpr int kPairs = (Places + 1) / 2, kPoints = 2 * kPairs + 2, kOutputs = 4;
  static constexpr Polynomials<kPairs> kFactors{};

  // Sums up every other element, each times its coefficient; the last one's is 1.
  [[gnu::always_inline]] static Eight Sum(const Eight* elements, int but, int last) {
    Eight sum = elements[2 * last];
    ORTRIM_UNROLLED (int k = last - 1; k >= 0; k--) sum += kFactors.of[but][k] * elements[2 * k];
    return sum;
  }

  // Transforms the inputs of a tile, eight channels of each.
  [[gnu::always_inline]] static void Input(const float* from, size_t step, float* to, size_t apart) {
    Eight elements[kPoints];
    ORTRIM_UNROLLED (int i = 0; i < kPoints; i++) elements[i] = Load(from + i * step);
    Store(to, Sum(elements, kPairs, kPairs));
    ORTRIM_UNROLLED (int pair = 0; pair < kPairs; pair++) {
      const Eight even = Sum(elements + 2, pair, kPairs - 1), odd = Sum(elements + 1, pair, kPairs - 1);
      Store(to + (1 + 2 * pair) * apart, even + kAt[pair] * odd);
      Store(to + (2 + 2 * pair) * apart, even - kAt[pair] * odd);
    }
    Store(to + (kPoints - 1) * apart, Sum(elements + 1, kPairs, kPairs));
  }

  // Transforms products back to a tile's outputs, for eight filters.
  [[gnu::always_inline]] static void Output(const float* from, size_t apart, Eight (&outputs)[kOutputs]) {
    outputs[0] = Load(from);
    outputs[1] = outputs[2] = Eight{};
    outputs[3] = Load(from + (kPoints - 1) * apart);
    ORTRIM_UNROLLED (int pair = 0; pair < kPairs; pair++) {
      const Eight plus = Load(from + (1 + 2 * pair) * apart), minus = Load(from + (2 + 2 * pair) * apart);
      const Eight even = plus + minus, odd = plus - minus;
      outputs[0] += even;
      outputs[1] += kAt[pair] * odd;
      outputs[2] += kAt[pair] * kAt[pair] * even;
      outputs[3] += kAt[pair] * kAt[pair] * kAt[pair] * odd;
    }
  }

  // Transforms the weights of a block of channels for a block of filters; places lie `step` values apart.
  static void Filter(const float* from, size_t step, float* to, size_t apart) {
    for (size_t i = 0; i < kBlock * kBlock; i += kBlock, from += kBlock, to += kBlock) {
      Eight weights[Places];
      ORTRIM_UNROLLED (int k = 0; k < Places; k++) weights[k] = Load(from + k * step);
      Store(to, weights[0] / kFactors.of[kPairs][0]);
      ORTRIM_UNROLLED (int pair = 0; pair < kPairs; pair++) {
        const float square = kAt[pair] * kAt[pair];
        float share = 0;
        ORTRIM_UNROLLED (int k = kPairs - 1; k >= 0; k--) share = share * square + kFactors.of[pair][k];
        Eight even = weights[Places - 1], odd = weights[Places - 2];
        ORTRIM_UNROLLED (int k = Places - 3; k >= 0; k -= 2) even = even * square + weights[k];
        ORTRIM_UNROLLED (int k = Places - 4; k >= 0; k -= 2) odd = odd * square + weights[k];
        share = 1 / (2 * square * share);
        Store(to + (1 + 2 * pair) * apart, (even + kAt[pair] * odd) * share);
        Store(to + (2 + 2 * pair) * apart, (even - kAt[pair] * odd) * share);
      }
      Store(to + (kPoints - 1) * apart, weights[Places - 1]);
    }
  }
};

// One axis of a convolution; from one place to the next there are so many values in the input, output and filter.
struct Axis {
  size_t input, output, kernel, stride, dilation, before, input_step, output_step, filter_step;
  bool HasTiles() const { return (kernel == 3 || kernel == 5) && stride == 1 && dilation == 1; }
};

// A convolution whose tiles lie along one axis. Inputs and filters are blocks of a group; sizes are a block's values.
struct Tiled {
  Axis along, across;
  size_t images, groups, inputs, filters, input_size, output_size;
  const float *input, *filter, *bias;
  float* output;
  bool adds, relu;

  size_t Row() const { return (along.output + 3) / 4; }
  size_t Tiles() const { return Row() * across.output; }
  size_t Depth() const { return inputs * across.kernel; }
  size_t Points() const { return along.kernel + 3; }

  // Whether products saved are more than transforms take, an instruction each for a value before and after.
  bool Pays() const {
    const size_t direct = along.output * across.output * along.kernel, area = Depth() * filters * kBlock;
    return Tiles() * (Points() * area + 3 * (Depth() + filters)) < direct * area * 9 / 10;
  }
};

// Some of the tiles of an image's group, for all of its filters or for one of `splits` shares.
template <int Places>
struct Batches {
  using W = Winograd<Places>;
  static constexpr size_t kMost = 24;      // tiles; the pointwise kernel has six in registers
  static constexpr size_t kRoom = 1 << 16;  // values of transformed inputs, if six tiles have no more
  static constexpr size_t kChain = 8;      // blocks of channels, whose products are summed up apart: a long sum is less exact
  static constexpr size_t kFilters = 4;    // blocks

  const Tiled& of;
  const float* weights;
  size_t wide, batches, splits;

  Batches(const Tiled& convolution, const float* transformed, size_t threads) : of(convolution), weights(transformed) {
    wide = std::clamp(kRoom / (W::kPoints * of.Depth() * kBlock) / 6 * 6, size_t{6}, kMost);
    batches = (of.Tiles() + wide - 1) / wide;
    splits = std::clamp(threads / Shares(), size_t{1}, (of.filters + kFilters - 1) / kFilters);
  }

  size_t Shares() const { return of.images * of.groups * batches; }

  struct Place {
    float* output;  // of the group's first block
    size_t count;   // of the tile's outputs that there are
  };

  // Transforms the inputs of a tile and returns where its outputs are.
  Place Transform(size_t tile, const float* input, float* output, float* to, size_t count) const {
    const bool in_rows = of.along.input_step == kBlock;
    const size_t place = in_rows ? tile % of.Row() : tile / of.across.output;
    const size_t line = in_rows ? tile / of.Row() : tile % of.across.output;
    const ptrdiff_t start = static_cast<ptrdiff_t>(W::kOutputs * place) - static_cast<ptrdiff_t>(of.along.before);
    const size_t first = std::max(-start, ptrdiff_t{0});
    const size_t end = std::clamp(static_cast<ptrdiff_t>(of.along.input) - start, ptrdiff_t{0}, ptrdiff_t{W::kPoints});
    const size_t inputs = of.inputs, size = of.input_size, step = of.along.input_step;
    const size_t apart = of.Depth() * count * kBlock, skip = of.across.kernel * count * kBlock;
    for (size_t row = 0; row < of.across.kernel; row++) {
      const size_t at = line * of.across.stride + row * of.across.dilation - of.across.before;
      const size_t last = at < of.across.input ? end : first;  // a row of padding is zeros
      const float* from = input + static_cast<ptrdiff_t>(at * of.across.input_step) + start * static_cast<ptrdiff_t>(step);
      float* block = to + row * count * kBlock;
      if (last - first == W::kPoints) {
        for (size_t i = 0; i < inputs; i++, from += size, block += skip)
          W::Input(from, step, block, apart);
      } else {
        alignas(kBytes) float padded[W::kPoints * kBlock] = {};
        for (size_t i = 0; i < inputs; i++, from += size, block += skip) {
          for (size_t k = first; k < last; k++) Store(padded + k * kBlock, Load(from + k * step));
          W::Input(padded, kBlock, block, apart);
        }
      }
    }
    const size_t done = W::kOutputs * place;
    return {output + line * of.across.output_step + done * of.along.output_step,
            std::min<size_t>(W::kOutputs, of.along.output - done)};
  }

  // Stores a tile's outputs for a block of filters.
  void Finish(const float* products, size_t apart, const Place& place, size_t block, size_t channel) const {
    Eight outputs[W::kOutputs];
    W::Output(products, apart, outputs);
    const Eight bias = of.bias == nullptr ? Eight{} : Load(of.bias + channel * kBlock);
    const size_t step = of.along.output_step;
    const bool adds = of.adds, relu = of.relu;
    float* output = place.output + block * of.output_size;
    ORTRIM_UNROLLED (size_t i = 0; i < W::kOutputs; i++) {
      if (i == place.count) return;
      Eight sum = outputs[i] + bias;
      if (adds) sum += Load(output);
      if (relu) sum = sum < 0 ? Eight{} : sum;
      Store(output, sum);
      output += step;
    }
  }

  void Run(size_t share) const {
    const size_t split = share % splits, batch = share / splits % batches, group = share / splits / batches;
    const size_t first = batch * wide, count = std::min(wide, of.Tiles() - first), depth = of.Depth();
    MlasThreadedBufAlloc((depth + kFilters) * W::kPoints * wide * kBytes);
    float* const inputs = reinterpret_cast<float*>(ThreadedBufHolder.get());
    float* const products = inputs + depth * W::kPoints * count * kBlock;
    Place places[kMost];
    for (size_t i = 0; i < count; i++)
      places[i] = Transform(first + i, of.input + group * of.inputs * of.input_size,
                            of.output + group * of.filters * of.output_size, inputs + i * kBlock, count);
    const size_t last = of.filters * (split + 1) / splits, chains = (depth + kChain - 1) / kChain;
    for (size_t filter = of.filters * split / splits; filter < last; filter += kFilters) {
      const size_t filters = std::min(kFilters, last - filter), channel = group % of.groups * of.filters + filter;
      const size_t apart = filters * count * kBlock;
      for (size_t point = 0; point < W::kPoints; point++) {
        for (size_t chain = 0; chain < chains; chain++) {
          const size_t from = depth * chain / chains, to = depth * (chain + 1) / chains;
          ConvolvePointwise<Blocked>(inputs + (point * depth + from) * count * kBlock,
                                     weights + ((channel * W::kPoints + point) * depth + from) * kBlock * kBlock,
                                     products + point * apart, kBytes, to - from, filters, count * kBytes,
                                     W::kPoints * depth * kBlock * kBytes, count * kBytes, count, nullptr,
                                     chain == 0 ? 0 : kAccumulate);
        }
      }
      for (size_t i = 0; i < filters; i++)
        for (size_t tile = 0; tile < count; tile++)
          Finish(products + (i * count + tile) * kBlock, apart, places[tile], filter + i, channel + i);
    }
  }
};

template <int Places>
const float* TransformFilters(const Tiled& of) {
  using W = Winograd<Places>;
  constexpr size_t kWeights = kBlock * kBlock;
  const size_t depth = of.Depth(), filters = of.groups * of.filters, area = of.along.kernel * of.across.kernel;
  float* const all = new float[filters * W::kPoints * depth * kWeights];
  for (size_t i = 0; i < filters * depth; i++) {
    const size_t filter = i / depth, k = i % depth, block = i / of.across.kernel, row = i % of.across.kernel;
    W::Filter(of.filter + block * area * kWeights + row * of.across.filter_step, of.along.filter_step,
              all + (filter * W::kPoints * depth + k) * kWeights, depth * kWeights);
  }
  return all;
}

template <int Places>
void ConvolveTiles(const Tiled& of, std::atomic<const float*>& kept, MLAS_THREADPOOL* pool) {
  const float* weights = kept.load(std::memory_order_acquire);
  if (weights == nullptr) {
    const float* const made = TransformFilters<Places>(of);
    if (kept.compare_exchange_strong(weights, made, std::memory_order_acq_rel)) weights = made;
    else delete[] made;
  }
  const Batches<Places> work(of, weights, MlasGetMaximumThreadCount(pool));
  MlasTrySimpleParallel(pool, work.Shares() * work.splits, [&](ptrdiff_t share) { work.Run(share); });
}

}  // namespace

namespace ortrim {

bool ConvolveTiled(std::atomic<const float*>& kept, const int64_t* input_shape, const int64_t* kernel,
                   const int64_t* dilation, const int64_t* padding, const int64_t* stride, const int64_t* output_shape,
                   size_t groups, const float* input, const float* filter, const float* bias, float* output,
                   const MLAS_ACTIVATION* activation, bool zero, MLAS_THREADPOOL* pool, ...) {
  const auto axis = [=](int i) {
    const auto of = [i](const int64_t* sizes) { return static_cast<size_t>(sizes[i]); };
    return Axis{of(input_shape + 2), of(output_shape + 2), of(kernel), of(stride), of(dilation), of(padding),
                i == 1 ? kBlock : kBlock * input_shape[3], i == 1 ? kBlock : kBlock * output_shape[3],
                kBlock * kBlock * (i == 1 ? 1 : kernel[1])};
  };
  const Axis rows = axis(0), columns = axis(1);
  const Axis &along = columns.HasTiles() ? columns : rows, &across = columns.HasTiles() ? rows : columns;
  const size_t channels = input_shape[1] / groups;
  const bool relu = activation->ActivationKind == MlasReluActivation;
  const Tiled of{along, across, static_cast<size_t>(input_shape[0]), groups, channels / kBlock,
                 output_shape[1] / groups / kBlock, kBlock * rows.input * columns.input,
                 kBlock * rows.output * columns.output, input, filter, bias, output, !zero, relu};
  if (of.images == 0 || channels < kBlock || !along.HasTiles() || !of.Pays()) return false;
  along.kernel == 3 ? ConvolveTiles<3>(of, kept, pool) : ConvolveTiles<5>(of, kept, pool);
  if (!relu && activation->ActivationKind != MlasIdentityActivation) {
    MlasTrySimpleParallel(pool, of.images * groups * of.filters, [&](ptrdiff_t block) {
      MlasActivation(activation, output + block * of.output_size, nullptr, 1, of.output_size, of.output_size);
    });
  }
  return true;
}

}  // namespace ortrim
