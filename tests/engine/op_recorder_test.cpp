// Recorded kernels against the step plan: the bytes that an op is priced with are those its kernels touch.
#include "engine/recording/op_recorder.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "core/error.hpp"
#include "lower/lower.hpp"
#include "tests/engine/support/small_gpu_model.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

// Three layers, so that recording one shows; and more words than record_op keeps for ops that need none.
ModelShape recorded_model(int num_kv_heads) {
  ModelShape shape = small_model(num_kv_heads, Dtype::f16);
  shape.layers.assign(3, 0);
  shape.vocab_size = 4000;
  return shape;
}

// Decodes with contexts of one token, a whole block of 16 and one more, and several blocks.
Batch ragged_decodes() {
  Batch batch;
  for (const int context : {1, 16, 17, 100}) batch.sequences.push_back({context, Phase::decode, context - 1, 1, true});
  return batch;
}

// A whole prompt, a chunk that follows 40 tokens, and a last chunk of one.
Batch ragged_prefills() {
  Batch batch;
  for (const auto& [computed, fresh] : {std::pair{0, 21}, {40, 16}, {31, 1}})
    batch.sequences.push_back({computed, Phase::prefill, computed, fresh, true});
  return batch;
}

// Distinct bytes that the launches load from, or store to, memory of a role.
double distinct_bytes(const std::vector<AddressTrace>& launches, OperandRole role, AccessKind kind) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const AddressTrace& launch : launches)
    for (const WaveAccess& access : launch.accesses) {
      const auto after =
          std::upper_bound(launch.buffers.begin(), launch.buffers.end(), access.address,
                           [](std::uint64_t address, const TracedBuffer& buffer) { return address < buffer.address; });
      if (access.kind == kind && std::prev(after)->role == role)
        ranges.emplace_back(access.address, access.address + access.bytes);
    }
  std::sort(ranges.begin(), ranges.end());
  std::uint64_t total = 0, covered = 0;
  for (const auto& [begin, end] : ranges) {
    total += std::max(end, covered) - std::max(begin, covered);
    covered = std::max(covered, end);
  }
  return static_cast<double>(total);
}

double planned_bytes(const Op& op, OperandRole role) {
  double total = 0;
  for (const Operand& operand : op.operands())
    if (operand.role == role) total += operand.unique.value();
  return total;
}

// Bytes that kernels touch and the plan leaves out, or counts in another format.
struct Unplanned {
  double loaded = 0;  // beyond the operands of role activation
  double stored = 0;  // beyond the output
};

void check_bytes(const RecordedOp& recorded, const Unplanned& unplanned) {
  const Op& op = recorded.op();
  const auto& launches = recorded.launches;
  INFO(op.name);
  const auto loaded = [&](OperandRole role) { return distinct_bytes(launches, role, AccessKind::load); };
  const auto stored = [&](OperandRole role) { return distinct_bytes(launches, role, AccessKind::store); };
  for (const OperandRole role : {OperandRole::weight, OperandRole::kv_read, OperandRole::block_table})
    CHECK(loaded(role) == planned_bytes(op, role));
  CHECK(loaded(OperandRole::activation) == planned_bytes(op, OperandRole::activation) + unplanned.loaded);
  // Activations are written to where others are read from, K and V to where attention reads them.
  CHECK(stored(OperandRole::activation) == planned_bytes(op, OperandRole::output) + unplanned.stored);
  CHECK(stored(OperandRole::kv_read) == planned_bytes(op, OperandRole::kv_write));
}

bool same_accesses(const AddressTrace& a, const AddressTrace& b) {
  const auto same = [](const WaveAccess& x, const WaveAccess& y) {
    return x.address == y.address && x.bytes == y.bytes && x.lane_bytes == y.lane_bytes &&
           x.instruction == y.instruction && x.kind == y.kind;
  };
  return a.workgroups == b.workgroups && a.waves_per_workgroup == b.waves_per_workgroup &&
         a.wave_begin == b.wave_begin &&
         std::equal(a.accesses.begin(), a.accesses.end(), b.accesses.begin(), b.accesses.end(), same);
}

lower::Launch lowered(const RecordedOp& recorded) { return lower::lower(recorded.op(), recorded.plan, {}); }

}  // namespace

TEST_CASE("decode attention touches the bytes of its plan, whatever the group, the block, the format and the wave",
          "[recording]") {
  for (const int num_kv_heads : {8, 2, 1})
    for (const int block_size : {1, 16, 64})
      for (const Dtype kv : {Dtype::f16, Dtype::fp8_e4m3})
        for (const int heads_per_workgroup : {0, 1}) {
          const ModelShape model = recorded_model(num_kv_heads);
          EngineOptions options;
          options.block_size = block_size;
          options.kv_cache_dtype = kv;
          options.attention_split.query_heads_per_workgroup = heads_per_workgroup;
          INFO(num_kv_heads << " KV heads, blocks of " << block_size << ", " << name(kv));
          const int wave_size = kv == Dtype::f16 ? 64 : 32;
          const RecordedOp recorded = record_op(model, options, ragged_decodes(), "attention_decode", wave_size);
          REQUIRE(recorded.launches.size() == 1);
          CHECK(recorded.launches[0].wave_size == wave_size);
          CHECK(recorded.launches[0].workgroups == lowered(recorded).grid.workgroups);
          CHECK(recorded.op().count == 1);
          check_bytes(recorded, {.loaded = 4 * 4});  // context lengths
        }
}

TEST_CASE("partitioned decode attention is two launches; the second reads what the first wrote", "[recording]") {
  const ModelShape model = recorded_model(2);
  EngineOptions options;
  options.attention_split.partition_tokens = 32;
  const Batch batch = uniform_batch(Phase::decode, 2, 100);
  const RecordedOp recorded = record_op(model, options, batch, "attention_decode", 64);
  REQUIRE(recorded.launches.size() == 2);
  CHECK(recorded.launches[0].workgroups == lowered(recorded).grid.workgroups);
  const double partials = 2 * 4;
  const double numerators = 4 * partials * model.heads().query_width(),
               sums = 4 * partials * 2 * model.kinds[0].gqa().heads.num_attention_heads;
  CHECK(distinct_bytes({recorded.launches[1]}, OperandRole::kv_read, AccessKind::load) == 0);
  // The second pass asks for the context lengths, maxima and sums, and the numerators.
  CHECK(distinct_bytes({recorded.launches[1]}, OperandRole::activation, AccessKind::load) == 2 * 4 + sums + numerators);
  // The price counts the numerators as output twice, for writing and for reading, and leaves out maxima and sums.
  check_bytes(recorded, {.loaded = 2 * 4 + sums + numerators, .stored = sums + numerators});
  CHECK(lowered(recorded).unique_bytes() - recorded.op().unique_bytes() == Bytes(2 * numerators));
}

TEST_CASE("prefill attention touches the bytes of its plan, chunks included", "[recording]") {
  for (const int num_kv_heads : {8, 2})
    for (const int block_size : {1, 16})
      for (const int wave_size : {64, 32}) {
        const ModelShape model = recorded_model(num_kv_heads);
        EngineOptions options;
        options.block_size = block_size;
        INFO(num_kv_heads << " KV heads, blocks of " << block_size << ", waves of " << wave_size);
        const RecordedOp recorded = record_op(model, options, ragged_prefills(), "attention_prefill", wave_size);
        CHECK(recorded.launches.size() == 1);
        check_bytes(recorded, {.loaded = 3 * 4 + 4 * 4});  // context lengths, first tokens
      }
}

TEST_CASE("matmuls touch the bytes of their plan", "[recording]") {
  const ModelShape model = recorded_model(2);
  const EngineOptions options;
  for (const char* op : {"qkv_proj", "o_proj", "gate_up_proj", "down_proj"})
    for (const int rows : {1, 3, 50}) {
      const RecordedOp recorded = record_op(model, options, uniform_batch(Phase::prefill, 1, rows), op, 64);
      CHECK(recorded.launches.size() == 1);
      check_bytes(recorded, {});
    }
  // Logits are F32, whatever the activations.
  check_bytes(record_op(model, options, uniform_batch(Phase::decode, 2, 5), "lm_head", 32),
              {.stored = 2.0 * 2 * model.vocab_size});
  // Few tiles and a long k: divided among workgroups, whose F32 sums are written and read on top.
  ModelShape deep = model;
  deep.hidden_size = 1024;
  const RecordedOp split = record_op(deep, options, uniform_batch(Phase::prefill, 1, 20), "qkv_proj", 64);
  CHECK(split.launches.size() == 2);
  const double partial_sums =
      4.0 * 4 * 20 * (model.heads().query_width() + 2 * model.heads().kv_width());  // four parts of 256
  check_bytes(split, {.loaded = partial_sums, .stored = partial_sums});
}

TEST_CASE("products with FP8 weights touch the bytes of their plan, and their scales", "[recording]") {
  ModelShape model = recorded_model(2);
  model.kinds[0].mlp.intermediate_size = 192;
  EngineOptions options;
  options.weights = {Dtype::fp8_e4m3, 0};
  for (const int rows : {1, 50}) {
    const RecordedOp recorded = record_op(model, options, uniform_batch(Phase::prefill, 1, rows), "down_proj", 64);
    const Op& op = recorded.op();
    constexpr double kScales = 4.0 * 1 * 2;  // of 64 rows and 192 columns
    CHECK(distinct_bytes(recorded.launches, OperandRole::weight, AccessKind::load) ==
          planned_bytes(op, OperandRole::weight) + kScales);
    CHECK(distinct_bytes(recorded.launches, OperandRole::activation, AccessKind::load) ==
          planned_bytes(op, OperandRole::activation));
  }
  CHECK(distinct_bytes(record_op(model, options, uniform_batch(Phase::decode, 2, 5), "lm_head", 64).launches,
                       OperandRole::weight, AccessKind::load) == 2.0 * model.vocab_size * model.hidden_size);
}

// DeepSeek-V2-Lite's two kinds of layers with small parts.
ModelShape model_with_latents() {
  ModelShape shape = recorded_model(1);
  Mla attention{.num_attention_heads = 4,
                .q_lora_rank = 0,
                .kv_lora_rank = 40,
                .qk_nope_head_dim = 16,
                .qk_rope_head_dim = 8,
                .v_head_dim = 24};
  shape.kinds[0].attention = attention;
  shape.kinds.push_back(shape.kinds[0]);
  shape.kinds[1].mlp.intermediate_size = 64;
  shape.layers = {0, 1, 1};
  return shape;
}

TEST_CASE("attention over latents touches the bytes of its plan in both phases", "[recording]") {
  const ModelShape model = model_with_latents();
  for (const Dtype kv : {Dtype::f16, Dtype::fp8_e4m3})
    for (const int block_size : {1, 16}) {
      INFO(name(kv) << ", blocks of " << block_size);
      EngineOptions options;
      options.block_size = block_size;
      options.kv_cache_dtype = kv;
      options.prefill_latents = LatentForm::absorb;
      const RecordedOp decode = record_op(model, options, ragged_decodes(), "attention_decode", 64);
      check_bytes(decode, {.loaded = 4 * 4 + 5 * 4});  // context lengths, first tokens
      const RecordedOp prefill = record_op(model, options, ragged_prefills(), "attention_prefill", 64);
      CHECK(prefill.launches.size() == 1);
      check_bytes(prefill, {.loaded = 3 * 4 + 4 * 4});
    }
}

TEST_CASE("absorbed products touch the bytes of their plan", "[recording]") {
  const ModelShape model = model_with_latents();
  constexpr double kRotated = 2.0 * 3 * 4 * 8;  // of each query's heads, which absorb_k puts behind its products
  for (const auto& [op, unplanned] : {std::pair("absorb_k", kRotated), {"absorb_v", 0.0}}) {
    const RecordedOp recorded = record_op(model, {}, uniform_batch(Phase::decode, 3, 20), op, 64);
    CHECK(recorded.launches.size() == 1);
    check_bytes(recorded, {.loaded = unplanned, .stored = unplanned});
  }
}

TEST_CASE("the other ops touch the bytes of their plan, and those it leaves out", "[recording]") {
  const ModelShape model = recorded_model(2);
  const EngineOptions options;
  const Batch batch = uniform_batch(Phase::prefill, 1, 5);
  const double values = 5.0 * model.hidden_size;
  const auto check = [&](const char* op, std::size_t launches, const Unplanned& unplanned) {
    const RecordedOp recorded = record_op(model, options, batch, op, 64);
    CHECK(recorded.launches.size() == launches);
    check_bytes(recorded, unplanned);
  };
  // The residual is F32. Five token ids.
  check("embed_tokens", 1, {.loaded = 5 * 4, .stored = 2 * values});
  // Norms read an F16 value and the F32 residual, and write both. The first layer's, which adds nothing, is not
  // recorded.
  for (const char* norm : {"input_layernorm", "post_attention_layernorm"})
    check(norm, 1, {.loaded = 2 * values, .stored = 2 * values});
  // Positions, slots and the rotary table's rows of five positions. K is rotated in place before it goes to the cache.
  check("rope_and_cache", 2,
        {.loaded = 5.0 * (4 + 8 + 4 * model.kinds[0].gqa().heads.head_dim),
         .stored = 2.0 * 5 * model.heads().kv_width()});
  check("silu_and_mul", 1, {});
}

TEST_CASE("a trace is the same every time, wherever the host's memory is", "[recording]") {
  const ModelShape model = recorded_model(2);
  const EngineOptions options;
  for (const char* op : {"attention_decode", "rope_and_cache"}) {
    const RecordedOp first = record_op(model, options, ragged_decodes(), op, 64);
    const auto in_the_way = std::make_unique<std::byte[]>(12345);
    const RecordedOp second = record_op(model, options, ragged_decodes(), op, 64);
    REQUIRE(first.launches.size() == second.launches.size());
    for (std::size_t i = 0; i < first.launches.size(); ++i) CHECK(same_accesses(first.launches[i], second.launches[i]));
  }
}

TEST_CASE("what cannot be recorded is refused", "[recording]") {
  ModelShape model = recorded_model(2);
  EngineOptions options;
  const Batch batch = uniform_batch(Phase::decode, 1, 5);
  CHECK_THROWS_WITH(record_op(model, options, batch, "attention_prefill", 64),
                    "this step has no op 'attention_prefill'; it has embed_tokens, input_layernorm, qkv_proj, "
                    "rope_and_cache, attention_decode, o_proj, post_attention_layernorm, gate_up_proj, silu_and_mul, "
                    "down_proj, norm, lm_head");
  options.kv_cache_dtype = Dtype::f32;
  CHECK_THROWS_AS(record_op(model, options, batch, "attention_decode", 64), InputError);
  options.kv_cache_dtype = Dtype::f16;
  options.weights = {Dtype::int4, 128};
  CHECK_NOTHROW(record_op(model, options, batch, "attention_decode", 64));
  CHECK_NOTHROW(record_op(model, options, batch, "lm_head", 64));
  CHECK_THROWS_WITH(record_op(model_with_latents(), options, batch, "absorb_k", 64),
                    "op 'absorb_k' with weights of int4 is not recorded; replay it with weights of f16 or bf16");
  options.weights = {Dtype::f16, 0};
  CHECK_THROWS_WITH(record_op(model_with_latents(), options, uniform_batch(Phase::prefill, 1, 5), "kv_b_proj", 64),
                    ContainsSubstring("op 'kv_b_proj' of latents that are expanded runs with others"));
  CHECK_THROWS_WITH(record_op(model_with_latents(), options, batch, "down_proj", 64),
                    ContainsSubstring("is another in layers of another kind"));
  CHECK_NOTHROW(record_op(model_with_latents(), options, batch, "o_proj", 64));
  model.kinds[0].gqa().heads.head_dim = 40;
  CHECK_THROWS_AS(record_op(model, options, batch, "attention_decode", 64), InputError);
}

}  // namespace dculab::engine
