// A Llama in double precision that keeps the unrotated K and V of every token it has seen, and attends to those that a
// retention policy lets it see: no cache, no blocks, no slots. The truth for kv_retention.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "core/kv/retention.hpp"
#include "engine/checkpoint/model_weights.hpp"
#include "engine/executors/rope_table.hpp"
#include "kernels/reference/stored_value.hpp"

namespace dculab::engine {

class DenseLlama {
 public:
  using Vector = std::vector<double>;

  DenseLlama(const ModelWeights& weights, const KvRetention& retention, int block_size)
      : weights_(weights), shape_(weights.shape), retention_(retention), block_size_(block_size) {
    layers_.resize(static_cast<std::size_t>(shape_.num_layers()));
    for (Layer& layer : layers_)
      layer.kept.resize(static_cast<std::size_t>(shape_.kinds[0].gqa().heads.num_key_value_heads));
  }

  // The logits after one more token.
  Vector step(int token) {
    Vector x = row(weights_.outer[WeightSlot::embed_tokens].weights[0], token, shape_.hidden_size);
    for (std::size_t index = 0; index < layers_.size(); ++index) {
      const WeightSlots& layer = weights_.layers[index];
      add(x, attention(index, normed(x, layer[WeightSlot::attention_norm].weights[0])));
      add(x, mlp(layer, normed(x, layer[WeightSlot::mlp_norm].weights[0])));
    }
    ++time_;
    return times(weights_.outer[WeightSlot::lm_head].weights[0],
                 normed(x, weights_.outer[WeightSlot::final_norm].weights[0]));
  }

  // Where the tokens that a KV head keeps stood in the text, ascending.
  [[nodiscard]] std::vector<int> kept(int layer, int kv_head) const {
    std::vector<int> times;
    for (const Kept& token : layers_[static_cast<std::size_t>(layer)].kept[static_cast<std::size_t>(kv_head)])
      times.push_back(token.time);
    return times;
  }

 private:
  // A token that a KV head keeps.
  struct Kept {
    int time = 0;
    double sum = 0;  // of the attention it got
  };
  struct Layer {
    std::vector<Vector> keys, values;     // [tokens][kv_width], not rotated
    std::vector<std::vector<Kept>> kept;  // [num_key_value_heads], oldest first
  };

  static double at(const kernels::WeightView& weight, std::size_t index) {
    return kernels::reference::load_value(weight.data, weight.dtype, index);
  }
  static Vector row(const kernels::WeightView& weight, int row, int width) {
    Vector result;
    for (int i = 0; i < width; ++i) result.push_back(at(weight, static_cast<std::size_t>(row * width + i)));
    return result;
  }
  static Vector times(const kernels::WeightView& weight, const Vector& x) {
    Vector y(static_cast<std::size_t>(weight.rows), 0.0);
    for (std::size_t n = 0; n < y.size(); ++n)
      for (std::size_t k = 0; k < x.size(); ++k) y[n] += at(weight, n * x.size() + k) * x[k];
    return y;
  }
  static void add(Vector& x, const Vector& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }
  [[nodiscard]] Vector normed(const Vector& x, const kernels::WeightView& weight) const {
    double squares = 0;
    for (const double value : x) squares += value * value;
    const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + shape_.norm_eps);
    Vector y;
    for (std::size_t i = 0; i < x.size(); ++i) y.push_back(x[i] * scale * at(weight, i));
    return y;
  }
  static Vector mlp(const WeightSlots& layer, const Vector& x) {
    Vector gate = times(layer[WeightSlot::up_proj].weights[kGate], x);
    const Vector up = times(layer[WeightSlot::up_proj].weights[kUp], x);
    for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
    return times(layer[WeightSlot::down_proj].weights[0], gate);
  }

  // One head of `x`, turned by the angles of `position`.
  [[nodiscard]] Vector rotated(const Vector& x, int head, int position) const {
    const std::vector<float> frequencies = rope_frequencies(Rotation(shape_.kinds.front()));
    const std::size_t half = frequencies.size(), first = static_cast<std::size_t>(head) * 2 * half;
    Vector result(2 * half);
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = static_cast<float>(position) * frequencies[i];
      const double a = x[first + i], b = x[first + half + i];
      result[i] = a * std::cos(angle) - b * std::sin(angle);
      result[half + i] = b * std::cos(angle) + a * std::sin(angle);
    }
    return result;
  }

  Vector attention(std::size_t index, const Vector& x) {
    const WeightSlots& weights = weights_.layers[index];
    Layer& layer = layers_[index];
    const Vector q = times(weights[WeightSlot::qkv_proj].weights[kQ], x);
    layer.keys.push_back(times(weights[WeightSlot::qkv_proj].weights[kK], x));
    layer.values.push_back(times(weights[WeightSlot::qkv_proj].weights[kV], x));
    Vector out;
    for (int head = 0; head < shape_.kinds[0].gqa().heads.num_attention_heads; ++head) {
      std::vector<Kept>& kept = layer.kept[static_cast<std::size_t>(head / shape_.heads().group_size())];
      if (head % shape_.heads().group_size() == 0) admit(kept);
      const Vector one = attend(layer, kept, q, head);
      out.insert(out.end(), one.begin(), one.end());
    }
    return times(weights[WeightSlot::o_proj].weights[0], out);
  }

  // Makes room as the policy says, and lets the new token in.
  void admit(std::vector<Kept>& kept) const {
    const auto size = static_cast<int>(kept.size());
    const int sinks = retention_.policy == RetentionPolicy::sinks ? retention_.sink_tokens : 0;
    if (retention_.policy == RetentionPolicy::heavy_hitters) {
      if (size == retention_.heavy_hitter_tokens + retention_.window_tokens) kept.erase(least(kept));
    } else if (retention_.policy == RetentionPolicy::window || in_cache()) {
      if (size == sinks + retention_.window_tokens + block_size_ - 1)
        kept.erase(kept.begin() + sinks, kept.begin() + sinks + block_size_);
    }
    kept.push_back({time_, 0});
  }

  [[nodiscard]] std::vector<Kept>::iterator least(std::vector<Kept>& kept) const {
    const auto recent =
        std::ranges::find_if(kept, [&](const Kept& token) { return token.time > time_ - retention_.window_tokens; });
    return std::min_element(kept.begin(), recent, [](const Kept& a, const Kept& b) { return a.sum < b.sum; });
  }

  [[nodiscard]] bool in_cache() const { return retention_.policy == RetentionPolicy::sinks; }

  // Of critical blocks with the smallest budget, which leaves nothing to choose: the first block, and the recent ones.
  // The first token is a prompt.
  [[nodiscard]] bool is_loaded(int time) const {
    if (retention_.policy != RetentionPolicy::critical_blocks) return true;
    return time < block_size_ || time / block_size_ > time_ / block_size_ - retention_.recent_blocks;
  }

  Vector attend(const Layer& layer, std::vector<Kept>& kept, const Vector& q, int head) const {
    const bool in_cache = this->in_cache();
    const int kv_head = head / shape_.heads().group_size();
    const auto width = static_cast<std::size_t>(shape_.kinds[0].gqa().heads.head_dim),
               first = static_cast<std::size_t>(kv_head) * width;
    const Vector query = rotated(q, head, in_cache ? static_cast<int>(kept.size()) - 1 : time_);
    Vector weights;
    double total = 0;
    for (std::size_t place = 0; place < kept.size(); ++place) {
      const Vector key = rotated(layer.keys[static_cast<std::size_t>(kept[place].time)], kv_head,
                                 in_cache ? static_cast<int>(place) : kept[place].time);
      double product = 0;
      for (std::size_t d = 0; d < width; ++d) product += query[d] * key[d];
      const bool counts = is_loaded(kept[place].time);
      weights.push_back(counts ? std::exp(product / std::sqrt(static_cast<double>(width))) : 0);
      total += weights.back();
    }
    Vector out(width, 0.0);
    for (std::size_t place = 0; place < kept.size(); ++place) {
      kept[place].sum += weights[place] / total;
      const Vector& value = layer.values[static_cast<std::size_t>(kept[place].time)];
      for (std::size_t d = 0; d < width; ++d) out[d] += weights[place] / total * value[first + d];
    }
    return out;
  }

  const ModelWeights& weights_;
  const ModelShape& shape_;
  KvRetention retention_;
  int block_size_;
  std::vector<Layer> layers_;
  int time_ = 0;
};

}  // namespace dculab::engine
