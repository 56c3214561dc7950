// Are the bytes that a plan counts for a kivi cache those that the kernels touch, and the memory that capacity() sets
// aside that which the engine allocates? What is read is found by spoiling it, what is written by writing it twice.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "core/kv/kivi.hpp"
#include "engine/kv/kv_storage.hpp"
#include "engine/kv/residual_rows.hpp"
#include "kernels/cpu/kv/kv_kernels.hpp"
#include "kernels/number_format.hpp"
#include "model/plan_step.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::engine {
namespace {

using kernels::KvCacheView;

constexpr int kHeadDim = 32;

ModelShape one_head(int sliding_window) {
  ModelShape model;
  model.hidden_size = kHeadDim, model.vocab_size = 8, model.max_position_embeddings = 2048;
  set_layers(model, 1,
             {.attention = Gqa{.heads = {1, 1, kHeadDim}, .sliding_window = sliding_window}, .mlp = {kHeadDim}});
  return model;
}

struct TrafficCase {
  Dtype dtype;
  int block_size, residual_tokens, computed, new_tokens, sliding_window = 0;
};

// One step of one sequence, one layer.
class Step {
 public:
  explicit Step(const TrafficCase& c)
      : case_(c),
        model_(one_head(c.sliding_window)),
        storage_(model_, {.num_blocks = 700 / c.block_size + 1,
                          .block_size = c.block_size,
                          .dtype = c.dtype,
                          .max_num_seqs = 1,
                          .residual_tokens = c.residual_tokens}) {
    Batch batch;
    const Phase phase = c.new_tokens == 1 ? Phase::decode : Phase::prefill;
    batch.sequences.push_back({.phase = phase, .num_computed_tokens = c.computed, .num_new_tokens = c.new_tokens});
    for (int block = 0; block * c.block_size < context(); ++block) blocks_.push_back(block);
    storage_.fill_randomly(1);
    rows_.allow_any_start();
    step_rows_ = rows_.assign(batch);
    for (int i = 0; i < c.new_tokens * 3 * kHeadDim; ++i)
      qkv_.push_back(kernels::f32_from_f16(kernels::f16_from_f32(std::sin(static_cast<float>(i + 1)))));
    EngineOptions options;
    options.block_size = c.block_size;
    options.kv_cache_dtype = c.dtype;
    options.kv_residual_tokens = c.residual_tokens;
    options.activation_dtype = Dtype::f32;
    plan_ = plan_step(model_, options, std::move(batch));
  }

  [[nodiscard]] int context() const { return case_.computed + case_.new_tokens; }
  [[nodiscard]] KvCacheView cache() const {
    KvCacheView view = storage_.layer(0);
    view.extras = kernels::KiviExtras{residual(),
                                      {.k = qkv_.data() + kHeadDim,
                                       .v = qkv_.data() + 2 * kHeadDim,
                                       .stride = 3 * kHeadDim,
                                       .residual_rows = step_rows_.data()}};
    return view;
  }
  [[nodiscard]] kernels::KvResidual residual() const {
    return storage_.layer(0).extras.as<kernels::KiviExtras>().residual;
  }
  [[nodiscard]] const std::int32_t* table() const { return blocks_.data(); }
  [[nodiscard]] std::vector<float>& qkv() { return qkv_; }

  [[nodiscard]] std::vector<float> attention() {
    std::vector<float> out(static_cast<std::size_t>(case_.new_tokens * kHeadDim));
    kernels::cpu::paged_attention(threads_, workspace_,
                                  {.q = qkv_.data(),
                                   .q_stride = 3 * kHeadDim,
                                   .cache = cache(),
                                   .block_tables = table(),
                                   .max_blocks_per_seq = static_cast<int>(blocks_.size()),
                                   .query_start_loc = starts_.data(),
                                   .context_lens = &context_,
                                   .out = out.data(),
                                   .num_seqs = 1,
                                   .num_heads = 1,
                                   .sliding_window = case_.sliding_window});
    return out;
  }
  void quantize() { kernels::cpu::quantize_groups(threads_, workspace_, args()); }
  void keep() { kernels::cpu::keep_residual(threads_, args()); }

  // Planned bytes of `role` of the op.
  [[nodiscard]] double planned(std::string_view op_name, OperandRole role) const {
    double bytes = 0;
    for (const Op& op : plan_.ops)
      for (const Operand& operand : op.operands())
        if (op.name.starts_with(op_name) && operand.role == role) bytes += operand.unique.value();
    return bytes;
  }

 private:
  [[nodiscard]] kernels::KiviArgs args() const {
    return {.cache = cache(),
            .block_tables = table(),
            .max_blocks_per_seq = static_cast<int>(blocks_.size()),
            .query_start_loc = starts_.data(),
            .context_lens = &context_,
            .num_seqs = 1};
  }

  TrafficCase case_;
  ModelShape model_;
  KvStorage storage_;
  ResidualRows rows_{1};
  std::span<const std::int32_t> step_rows_;
  StepPlan plan_;
  std::vector<std::int32_t> blocks_;
  std::vector<float> qkv_;  // [new tokens, Q, K, V]
  std::array<std::int32_t, 2> starts_{0, case_.new_tokens};
  std::int32_t context_ = case_.computed + case_.new_tokens;
  kernels::cpu::ThreadPool threads_{1};
  kernels::cpu::Workspace workspace_;
};

// Puts another value in a value's place and says whether attention notices.
template <typename T>
bool is_read(Step& step, const std::vector<float>& expected, T& value, T other) {
  const T kept = std::exchange(value, other);
  const bool is_noticed = step.attention() != expected;
  value = kept;
  return is_noticed;
}

// K and V of a token, quantized: 32 codes, a scale and a zero point each.
double quantized_bytes(Dtype dtype) { return 2.0 * (kHeadDim / 8.0 * bits(dtype) + 4); }
constexpr double kFullBytes = 2.0 * kHeadDim * 2;

std::vector<TrafficCase> cases() {
  std::vector<TrafficCase> all;
  for (const Dtype dtype : {Dtype::kivi4, Dtype::kivi2})
    for (const int residual : {32, 128})
      for (const auto& [computed, fresh] : std::vector<std::pair<int, int>>{{0, 1},
                                                                            {31, 1},
                                                                            {32, 1},
                                                                            {40, 1},
                                                                            {127, 1},
                                                                            {128, 1},
                                                                            {159, 1},
                                                                            {160, 1},
                                                                            {300, 1},
                                                                            {0, 20},
                                                                            {0, 300},
                                                                            {100, 70},
                                                                            {290, 33}})
        all.push_back({dtype, 16, residual, computed, fresh});
  all.push_back({Dtype::kivi4, 64, 64, 200, 1});
  all.push_back({Dtype::kivi4, 16, 32, 300, 1, 100});
  all.push_back({Dtype::kivi4, 16, 32, 260, 40, 100});
  return all;
}

std::string describe(const TrafficCase& c) {
  return std::string(name(c.dtype)) + ", blocks of " + std::to_string(c.block_size) + ", residual " +
         std::to_string(c.residual_tokens) + ", " + std::to_string(c.computed) + " + " + std::to_string(c.new_tokens) +
         " tokens, window " + std::to_string(c.sliding_window);
}

}  // namespace

TEST_CASE("kivi: attention reads the bytes that the plan counts, quantized ones and those in F16") {
  std::size_t point = 0;
  for (const TrafficCase& c : cases()) {
    if (thinned_out(point++, 3)) continue;
    INFO(describe(c));
    Step step(c);
    const KvCacheView cache = step.cache();
    const std::vector<float> expected = step.attention();
    const std::uint16_t other = kernels::f16_from_f32(30.0F);
    int quantized = 0, residual = 0;
    for (int token = 0; token < step.context(); ++token) {
      const int group = token / kKiviGroup * kKiviGroup;
      const bool is_whole = group + kKiviGroup <= step.context();
      const bool reads_v = is_read(step, expected, *kernels::kivi_value(cache, step.table(), 0, token, 0).scale, other);
      if (is_whole && c.sliding_window == 0)
        REQUIRE(is_read(step, expected, *kernels::kivi_key(cache, step.table(), 0, group, 0).scale, other) == reads_v);
      quantized += reads_v ? 1 : 0;
    }
    for (int row = 0; row < c.residual_tokens; ++row) {
      const bool reads_k = is_read(step, expected, step.residual().k[row * kHeadDim], other);
      REQUIRE(is_read(step, expected, step.residual().v[row * kHeadDim], other) == reads_k);
      residual += reads_k ? 1 : 0;
    }
    for (int token = 0; token < c.new_tokens; ++token)
      REQUIRE(is_read(step, expected, step.qkv()[static_cast<std::size_t>((token * 3 + 2) * kHeadDim)], 30.0F));
    // A window masks tokens of a tile that is loaded whole, which spoiling cannot tell from those that are not loaded.
    const double read = quantized * quantized_bytes(c.dtype) + residual * kFullBytes;
    if (c.sliding_window == 0) {
      CHECK(step.planned("attention", OperandRole::kv_read) == read);
    } else {
      CHECK(step.planned("attention", OperandRole::kv_read) >= read);
      CHECK(step.planned("attention", OperandRole::kv_read) <= read + 63 * quantized_bytes(c.dtype));
    }
    CHECK(step.planned("attention", OperandRole::activation) == 3.0 * c.new_tokens * kHeadDim * 4);
  }
}

TEST_CASE("kivi: groups and the residual are written with the bytes that the plan counts") {
  for (const TrafficCase& c : cases()) {
    INFO(describe(c));
    // A byte is written when two memories that differed in every bit have it in common.
    Step one(c), other(c);
    const auto bytes = [](void* pool, std::size_t count) { return std::span(static_cast<std::uint8_t*>(pool), count); };
    const kernels::KiviLayout layout(one.cache());
    const auto pool_bytes = static_cast<std::size_t>(layout.record_bytes() * one.cache().num_blocks);
    const auto ring_bytes = static_cast<std::size_t>(c.residual_tokens * kHeadDim) * 2;
    const auto written = [&](auto pick, std::size_t count, auto&& act) {
      int total = 0;
      for (const bool is_k : {true, false}) {
        std::memset(pick(one, is_k), 0x55, count);
        std::memset(pick(other, is_k), 0xAA, count);
      }
      act(one), act(other);
      for (const bool is_k : {true, false}) {
        const auto a = bytes(pick(one, is_k), count), b = bytes(pick(other, is_k), count);
        for (std::size_t i = 0; i < count; ++i) total += a[i] == b[i] ? 1 : 0;
      }
      return total;
    };
    const auto blocks = [](const Step& step, bool is_k) { return is_k ? step.cache().k : step.cache().v; };
    const auto ring = [](const Step& step, bool is_k) -> void* { return is_k ? step.residual().k : step.residual().v; };
    CHECK(written(blocks, pool_bytes, [](Step& step) { step.quantize(); }) ==
          one.planned("rope_and_cache", OperandRole::kv_write));
    CHECK(written(ring, ring_bytes, [](Step& step) { step.keep(); }) ==
          one.planned("attention", OperandRole::kv_write));
  }
}

TEST_CASE("kivi: a group is quantized from those residual rows that the plan counts") {
  for (const TrafficCase& c : cases()) {
    INFO(describe(c));
    Step step(c);
    const kernels::KiviLayout layout(step.cache());
    const auto snapshot = [&] {
      step.quantize();
      const auto* const k = static_cast<const std::uint8_t*>(step.cache().k);
      return std::vector<std::uint8_t>(k, k + layout.record_bytes() * step.cache().num_blocks);
    };
    const std::vector<std::uint8_t> before = snapshot();
    int rows = 0;
    for (int row = 0; row < c.residual_tokens; ++row) {
      std::uint16_t& value = step.residual().k[row * kHeadDim];
      const std::uint16_t kept = std::exchange(value, kernels::f16_from_f32(1000.0F));
      rows += snapshot() != before ? 1 : 0;
      value = kept;
    }
    CHECK(step.planned("rope_and_cache", OperandRole::kv_read) == rows * kFullBytes);
  }
}

}  // namespace dculab::engine
