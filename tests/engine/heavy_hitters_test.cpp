// H2O: the tokens that are kept, after every step. On random attention against the published procedure, and in a whole
// model against one that attends to what it keeps in double precision.
#include "engine/kv/heavy_hitters.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/checkpoint/model_loader.hpp"
#include "engine/executors/cpu_executor.hpp"
#include "lower/kv/kv_memory.hpp"
#include "model/plan_step.hpp"
#include "tests/engine/support/dense_llama.hpp"
#include "tests/engine/support/golden_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/retention_policies.hpp"

namespace dculab::engine {
namespace {

using Positions = std::vector<int>;  // ascending

// The slice of a text whose tokens before `position` have been computed.
SequenceSlice slice_at(const KvRetention& retention, int block_size, int position, int count) {
  const int evicted = kv_tokens_evicted_at(retention, block_size, position);
  const int before = kv_tokens_evicted_at(retention, block_size, position - 1);
  return {.id = 7,
          .phase = count > 1 ? Phase::prefill : Phase::decode,
          .num_computed_tokens = position - evicted,
          .num_new_tokens = count,
          .num_evicted_tokens = evicted,
          .num_newly_evicted_tokens = evicted - before};
}

std::vector<BlockId> blocks_for(const KvRetention& retention, int block_size) {
  std::vector<BlockId> blocks;
  for (int i = 0; i * block_size < kv_capacity(retention, block_size); ++i) blocks.push_back(i);
  return blocks;
}

Positions kept_by(const HeavyHitters& hitters, int layer, int kv_head) {
  Positions kept;
  for (const std::int32_t position : hitters.positions(7, layer, kv_head))
    if (position >= 0) kept.push_back(position);
  std::ranges::sort(kept);
  return kept;
}

// Attention without a model: what query head `head` of a layer makes of query and key at two positions.
double logit(int layer, int head, int query, int key) {
  const unsigned mixed = (static_cast<unsigned>(layer * 8 + head) * 7919U + static_cast<unsigned>(query)) * 104729U +
                         static_cast<unsigned>(key) * 2654435761U;
  const unsigned hashed = (mixed ^ (mixed >> 15U)) * 2246822519U;
  return static_cast<double>(hashed >> 8U) / (1 << 22) - 2 + 3.0 * (key % 11 == 3);  // a few keys that all look at
}

std::vector<double> softmax(int layer, int head, int query, const Positions& keys) {
  std::vector<double> weights;
  double total = 0;
  for (const int key : keys) total += weights.emplace_back(std::exp(logit(layer, head, query, key)));
  for (double& weight : weights) weight /= total;
  return weights;
}

// One KV head in the published procedure (arXiv:2306.14048, algorithm 1, with a window of recent tokens as in its
// evaluation): a token attends to all that is kept and to itself; then, if there are too many, one of those outside
// the window goes, the one with the smallest sum.
class Published {
 public:
  Published(int hitters, int recent) : hitters_(hitters), recent_(recent) {}

  // What the token at `position` attends to.
  Positions step(int layer, int first_head, int group_size, int position) {
    sums_[position] = 0;
    Positions seen;
    for (const auto& [key, sum] : sums_) seen.push_back(key);
    for (int head = first_head; head < first_head + group_size; ++head) {
      const std::vector<double> weights = softmax(layer, head, position, seen);
      for (std::size_t i = 0; i < seen.size(); ++i) sums_[seen[i]] += weights[i];
    }
    if (static_cast<int>(seen.size()) > hitters_ + recent_) drop(position);
    return seen;
  }

 private:
  void drop(int position) {
    const auto recent = sums_.upper_bound(position - recent_);
    sums_.erase(
        std::min_element(sums_.begin(), recent, [](const auto& a, const auto& b) { return a.second < b.second; }));
  }

  int hitters_, recent_;
  std::map<int, double> sums_;  // by position
};

// The engine's side: its choice of places with the same attention, and no keys.
class Engine {
 public:
  Engine(const ModelShape& shape, const KvRetention& retention)
      : shape_(shape), retention_(retention), hitters_(shape) {}

  // What the last of `count` tokens from `position` on attends to, per layer and KV head.
  std::vector<Positions> step(int position, int count) {
    const StepPlan plan{.ops = {},
                        .batch = {.sequences = {slice_at(retention_, kBlockSize, position, count)},
                                  .token_ids = {},
                                  .block_tables = {blocks_for(retention_, kBlockSize)}},
                        .kv_retention = retention_};
    hitters_.begin(plan, kBlockSize);
    std::vector<Positions> seen;
    for (int layer = 0; layer < shape_.num_layers(); ++layer) {
      REQUIRE(hitters_.place(layer) != nullptr);
      for (int token = position; token < position + count; ++token) add_attention(layer, token);
      for (int head = 0; head < shape_.kinds[0].gqa().heads.num_key_value_heads; ++head)
        seen.push_back(kept_by(hitters_, layer, head));
    }
    return seen;
  }

 private:
  static constexpr int kBlockSize = 4;

  void add_attention(int layer, int token) {
    float* sums = hitters_.sums(layer, 0, 1)[0];
    for (int head = 0; head < shape_.kinds[0].gqa().heads.num_attention_heads; ++head) {
      const int kv_head = head / shape_.heads().group_size();
      const auto places = hitters_.positions(7, layer, kv_head);
      Positions seen;
      std::vector<int> at;
      for (int place = 0; place < hitters_.capacity(); ++place) {
        const int key = places[static_cast<std::size_t>(place)];
        if (key < 0 || key > token) continue;
        seen.push_back(key);
        at.push_back(kv_head * hitters_.capacity() + place);
      }
      const std::vector<double> weights = softmax(layer, head, token, seen);
      for (std::size_t i = 0; i < seen.size(); ++i) sums[at[i]] += static_cast<float>(weights[i]);
    }
  }

  ModelShape shape_;
  KvRetention retention_;
  HeavyHitters hitters_;
};

ModelShape two_layers(int kv_heads, int longest_text) {
  return {.max_position_embeddings = longest_text,
          .kinds = {{.attention = Gqa{.heads = {4, kv_heads, 0}}}},
          .layers = {0, 0}};
}

}  // namespace

TEST_CASE("H2O has the places that are counted, and no more than a text is long") {
  for (const auto& [longest, places] : {std::pair{20, 13}, {9, 9}}) {
    const ModelShape shape = two_layers(2, longest);
    HeavyHitters hitters(shape);
    EngineOptions options;
    options.block_size = 4;
    options.kv_retention = hitters_of(6, 7);
    hitters.begin({.ops = {},
                   .batch = {.sequences = {slice_at(options.kv_retention, 4, 0, 5)},
                             .token_ids = {},
                             .block_tables = {blocks_for(options.kv_retention, 4)}},
                   .kv_retention = options.kv_retention},
                  4);
    CHECK(hitters.positions(7, 1, 1).size() == static_cast<std::size_t>(places));
    CHECK(lower::kv_policy_memory(lower::DeviceKind::cpu, shape, options).value() ==
          2.0 * 2 * places * (4 + 4));  // a sum and a position
  }
}

TEST_CASE("H2O sees what the published procedure sees, the token itself counted in the window") {
  for (const int kv_heads : {1, 2, 4}) {
    const ModelShape shape = two_layers(kv_heads, 250);
    for (const auto& [hitters, recent] : {std::pair{6, 6}, {1, 20}, {12, 0}, {5, 9}}) {
      INFO(kv_heads << " KV heads, " << hitters << " heavy hitters, " << recent << " recent tokens");
      Engine engine(shape, hitters_of(hitters, recent + 1));
      std::vector<Published> published(static_cast<std::size_t>(2 * kv_heads), Published(hitters, recent));
      const int prompt = hitters + recent - 1;
      for (int position = 0; position < 250; position += position == 0 ? prompt : 1) {
        const int count = position == 0 ? prompt : 1;
        const std::vector<Positions> seen = engine.step(position, count);
        for (int row = 0; row < 2 * kv_heads; ++row) {
          const int layer = row / kv_heads, first_head = row % kv_heads * shape.heads().group_size();
          Positions expected;
          for (int token = position; token < position + count; ++token)
            expected =
                published[static_cast<std::size_t>(row)].step(layer, first_head, shape.heads().group_size(), token);
          INFO("layer " << layer << ", position " << position + count - 1);
          REQUIRE(seen[static_cast<std::size_t>(row)] == expected);
        }
      }
    }
  }
}

TEST_CASE("H2O in a model: every layer and KV head keeps what a dense model keeps, at every step") {
  constexpr int kPrompt = 11, kBlockSize = 8;
  for (const std::string variant : {"gqa", "mha", "mqa"}) {
    const ModelWeights weights = load_weights(kGoldenFolder / variant);
    const KvRetention retention = hitters_of(9, 7);
    EngineOptions options;
    options.block_size = kBlockSize;
    options.kv_cache_dtype = options.activation_dtype = Dtype::f32;
    options.weights = {weights.shape.dtype, 0};
    options.kv_retention = retention;
    CpuExecutor executor(weights, {.num_blocks = 4, .block_size = kBlockSize, .dtype = Dtype::f32}, 2);
    DenseLlama dense(weights, retention, kBlockSize);
    for (int position = 0; position < 120; position += position == 0 ? kPrompt : 1) {
      Batch batch{.sequences = {slice_at(retention, kBlockSize, position, position == 0 ? kPrompt : 1)},
                  .token_ids = {},
                  .block_tables = {blocks_for(retention, kBlockSize)}};
      for (int i = 0; i < batch.num_tokens(); ++i) {
        batch.token_ids.push_back((position + i) * 37 % 96);
        (void)dense.step(batch.token_ids.back());
      }
      executor.run(plan_step(weights.shape, options, batch));
      for (int layer = 0; layer < weights.shape.num_layers(); ++layer) {
        for (int head = 0; head < weights.shape.kinds[0].gqa().heads.num_key_value_heads; ++head) {
          INFO(variant << ", layer " << layer << ", KV head " << head << ", position " << position);
          REQUIRE(kept_by(*dynamic_cast<const HeavyHitters*>(executor.kv_slice(RetentionPolicy::heavy_hitters)), layer,
                          head) == dense.kept(layer, head));
        }
      }
    }
  }
}

}  // namespace dculab::engine
