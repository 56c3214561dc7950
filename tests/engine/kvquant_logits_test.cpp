// Are the logits of a KVQuant cache those of an F32 cache that holds what KVQuant's levels leave of each token? The
// quantizer here is written from the paper (arXiv:2401.18079) and the calibration's numbers, not from the kernels.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <numeric>

#include "engine/checkpoint/model_loader.hpp"
#include "engine/executors/rope_table.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "kernels/number_format.hpp"
#include "tests/engine/support/shipped_text.hpp"
#include "tests/engine/support/stepper.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::engine {
namespace {

constexpr int kPrefilled = kSanitized ? 40 : 200, kDecoded = kSanitized ? 8 : 40;
constexpr int kTextBlock = 256;  // one block holds the text

using RowSpan = std::span<float>;

// 1 % of the channels, rounded up: those whose distances are largest.
std::vector<std::size_t> farthest(const std::vector<float>& distances) {
  std::vector<std::size_t> channels(distances.size());
  std::iota(channels.begin(), channels.end(), 0U);
  std::ranges::stable_sort(channels, [&](std::size_t a, std::size_t b) { return distances[a] > distances[b]; });
  channels.resize((distances.size() + 99) / 100);
  return channels;
}

// The edges of a range are values of the text, so that some lie as far out to the bit.
float place_of(float centre, float half_range, float value) {
  return (value - centre) * (half_range > 0 ? 1 / half_range : 0.0F);
}

float coded(const KvCodebook& book, float centre, float half_range, float value) {
  const float place = place_of(centre, half_range, value);
  const auto code = std::ranges::count_if(book.bounds, [place](float bound) { return bound < place; });
  return centre + half_range * book.levels[static_cast<std::size_t>(code)];
}

void keep_outliers(const std::vector<std::size_t>& channels, const std::vector<float>& exact, RowSpan row) {
  for (const std::size_t channel : channels) row[channel] = rounded_to_f16(exact[channel]);
}

// What is left of a token's K, before it is rotated.
void quantize_keys(const KvLayerCalibration& known, const KvCodebook& book, RowSpan k) {
  const std::vector<float> exact(k.begin(), k.end());
  std::vector<float> distances;
  for (std::size_t c = 0; c < k.size(); ++c)
    distances.push_back(std::abs(place_of(known.centres[c], known.half_ranges[c], k[c])));
  for (std::size_t c = 0; c < k.size(); ++c) k[c] = coded(book, known.centres[c], known.half_ranges[c], k[c]);
  keep_outliers(farthest(distances), exact, k);
}

// Of its V, whose range is that of what are no outliers.
void quantize_values(const KvCodebook& book, RowSpan v) {
  const std::vector<float> exact(v.begin(), v.end());
  std::vector<float> distances, others;
  for (const float value : exact) distances.push_back(std::abs(value));
  const std::vector<std::size_t> outliers = farthest(distances);
  for (std::size_t c = 0; c < exact.size(); ++c)
    if (std::ranges::find(outliers, c) == outliers.end()) others.push_back(exact[c]);
  const auto [least, most] = std::ranges::minmax(others);
  const float centre = rounded_to_f16((most + least) / 2), half_range = rounded_to_f16((most - least) / 2);
  for (float& value : v) value = coded(book, centre, half_range, value);
  keep_outliers(outliers, exact, v);
}

// Puts into the F32 cache of an executor what KVQuant leaves of each new token, before attention reads it.
class Leaving {
 public:
  Leaving(Stepper& stepper, const KvCalibration& known, std::size_t which)
      : stepper_(stepper),
        known_(known),
        which_(which),
        heads_(executor().shape().heads()),
        rope_(Rotation(executor().shape().kinds[0]), executor().shape().max_position_embeddings) {
    executor().observe_ops([this](const Op& op, int layer, std::span<const float> input) {
      if (op.kind == OpKind::rope_and_cache) qkv_.assign(input.begin(), input.end());
      if (op.kind == OpKind::attention_prefill || op.kind == OpKind::attention_decode) store(layer);
    });
  }

  Logits step(Phase phase, const std::vector<TokenId>& tokens) {
    Logits logits = stepper_.step({{0, phase, tokens}})[0];
    computed_ += static_cast<int>(tokens.size());
    return logits;
  }

 private:
  [[nodiscard]] CpuExecutor& executor() { return dynamic_cast<CpuExecutor&>(stepper_.executor()); }

  void store(int layer) {
    const BlockId block = stepper_.blocks(0).front();
    std::vector<std::byte> bytes(executor().bytes_per_block());
    executor().read_blocks({&block, 1}, bytes);
    auto* const cached = reinterpret_cast<float*>(bytes.data());
    const auto width = static_cast<std::size_t>(heads_.kv_width());
    const std::size_t stride = static_cast<std::size_t>(heads_.query_width()) + 2 * width;
    const KvLayerCalibration& of_layer = known_.layers[static_cast<std::size_t>(layer)];
    float* const keys = cached + static_cast<std::size_t>(2 * layer) * kTextBlock * width;
    for (std::size_t i = 0; i < qkv_.size() / stride; ++i) {
      const RowSpan row = RowSpan(qkv_).subspan(i * stride, stride);
      const RowSpan k = row.subspan(stride - 2 * width, width), values = row.last(width);
      quantize_keys(of_layer, of_layer.k[which_], k);
      quantize_values(of_layer.v[which_], values);
      const int position = computed_ + static_cast<int>(i);
      rotate(k, position);
      place(k, position, keys);
      place(values, position, keys + kTextBlock * width);
    }
    executor().write_blocks({&block, 1}, bytes);
  }

  // Each head in halves.
  void rotate(RowSpan k, int position) {
    const auto head = static_cast<std::size_t>(heads_.head_dim), half = head / 2;
    const float* const angles = rope_.rows(position + 1) + static_cast<std::size_t>(position) * head;
    for (std::size_t first = 0; first < k.size(); first += head)
      for (std::size_t d = 0; d < half; ++d) {
        const float a = k[first + d], b = k[first + half + d];
        k[first + d] = a * angles[d] - b * angles[half + d];
        k[first + half + d] = b * angles[d] + a * angles[half + d];
      }
  }

  // [KV heads, kBlock, head_dim].
  void place(RowSpan row, int position, float* cached) const {
    const auto head = static_cast<std::size_t>(heads_.head_dim);
    for (std::size_t first = 0; first < row.size(); first += head)
      std::copy_n(row.data() + first, head, cached + first * kTextBlock + static_cast<std::size_t>(position) * head);
  }

  Stepper& stepper_;
  const KvCalibration& known_;
  std::size_t which_;  // of kCalibratedBits
  Heads heads_;
  RopeTable rope_;
  std::vector<float> qkv_;  // of the new tokens, not rotated
  int computed_ = 0;
};

// The model with that layer alone: in a stack, a code that rounding turns into its neighbour moves K and V of the
// layers behind by a step, where more codes turn.
ModelWeights one_layer(const ModelWeights& weights, std::size_t layer) {
  ModelWeights one = weights;
  one.layers = {weights.layers[layer]};
  one.shape.layers = {weights.shape.layers[layer]};
  one.kv_calibration = [known = weights.kv_calibration(), layer] {
    return std::make_shared<const KvCalibration>(KvCalibration{{known->layers[layer]}});
  };
  return one;
}

struct KvquantErrors {
  double of_levels = 0;  // the largest of any step: against the F32 cache that holds what the levels leave
  double of_plain = 0;   // against one that keeps everything
};

KvquantErrors read_text(const ModelWeights& weights, Dtype dtype, std::size_t which,
                        const std::vector<TokenId>& tokens) {
  const std::shared_ptr<const KvCalibration> known = weights.kv_calibration();
  const StepperOptions f32{.block_size = kTextBlock, .kv_dtype = Dtype::f32};
  Stepper kvquant(weights, {.kv_dtype = dtype}), left(weights, f32), plain(weights, f32);
  Leaving leaving(left, *known, which);
  KvquantErrors errors;
  for (int next = 0; next < static_cast<int>(tokens.size());) {
    const Phase phase = next == 0 ? Phase::prefill : Phase::decode;
    const int count = next == 0 ? kPrefilled : 1;
    const std::vector<TokenId> fed(tokens.begin() + next, tokens.begin() + next + count);
    const Logits expected = leaving.step(phase, fed), logits = kvquant.step({{0, phase, fed}})[0];
    errors.of_levels = std::max(errors.of_levels, relative_error(logits, expected));
    errors.of_plain = std::max(errors.of_plain, relative_error(logits, plain.step({{0, phase, fed}})[0]));
    next += count;
  }
  return errors;
}

}  // namespace

TEST_CASE("the logits of a KVQuant cache are those of what the calibrated levels leave of each token", "[once]") {
  const ModelWeights weights = load_weights(kShippedModel);
  const std::vector<TokenId> tokens = shipped_tokens("eval/held-out.txt", kPrefilled + kDecoded);
  for (std::size_t layer = 0; layer < weights.layers.size(); ++layer)
    for (const auto& [dtype, which] : {std::pair{Dtype::kvquant4, 0U}, {Dtype::kvquant3, 1U}, {Dtype::kvquant2, 2U}}) {
      const KvquantErrors errors = read_text(one_layer(weights, layer), dtype, which, tokens);
      INFO(name(dtype) << ", layer " << layer << ": " << errors.of_levels << ", from what is not quantized "
                       << errors.of_plain);
      // K is rotated, and sums are added up, in F32 and in another order.
      CHECK(errors.of_levels < 0x1p-16);
      CHECK(errors.of_plain > 1000 * errors.of_levels);
    }
}

}  // namespace dculab::engine
