#include "tests/replay/kernel_grid.hpp"

#include <cmath>
#include <map>
#include <utility>

#include "engine/recording/op_recorder.hpp"
#include "lower/dculab_gpu/kernels.hpp"
#include "lower/dculab_gpu/matrix_cores.hpp"

namespace dculab {
namespace {

[[nodiscard]] ModelShape llama(const std::string& name, int heads, int kv_heads, int head_dim, int intermediate) {
  ModelShape model;
  model.name = name;
  model.layers.assign(1, 0);
  model.kinds[0].gqa().heads = {heads, kv_heads, head_dim};
  model.hidden_size = heads * head_dim;
  model.kinds[0].mlp.intermediate_size = intermediate;
  model.vocab_size = 2000;
  model.max_position_embeddings = 512;
  model.dtype = Dtype::f16;
  return model;
}

// Layer norms, biases, no rotation, a plain MLP.
[[nodiscard]] ModelShape bloom(int heads, int head_dim, int intermediate) {
  ModelShape model = llama("bloom", heads, heads, head_dim, intermediate);
  model.norm = NormKind::layer_norm;
  model.embedding_norm = true;
  model.kinds[0].gqa().position.kind = PositionKind::alibi;
  model.kinds[0].mlp.kind = MlpKind::plain;
  model.kinds[0].mlp.activation = ActivationKind::gelu_tanh;
  model.kinds[0].gqa().qkv_bias = model.kinds[0].gqa().output_bias = model.kinds[0].mlp.bias = true;
  return model;
}

[[nodiscard]] std::vector<std::string> elementwise_ops(const ModelShape& model) {
  const bool gated = model.kinds[0].mlp.kind == MlpKind::gated;
  std::vector<std::string> ops{
      "embed_tokens", "input_layernorm", "rope_and_cache", "post_attention_layernorm", gated ? "silu_and_mul" : "gelu",
      "norm"};
  if (model.embedding_norm) ops.emplace_back("word_embeddings_layernorm");
  return ops;
}

[[nodiscard]] std::vector<std::string> products(const ModelShape& model) {
  return {"qkv_proj", "o_proj", model.kinds[0].mlp.kind == MlpKind::gated ? "gate_up_proj" : "up_proj", "down_proj",
          "lm_head"};
}

struct Rows {
  Phase phase;
  int batch, context;
};

[[nodiscard]] std::vector<Rows> rows_of(GridSize size) {
  if (size == GridSize::quick)
    return {{Phase::decode, 1, 40}, {Phase::decode, 8, 40}, {Phase::decode, 40, 40}, {Phase::prefill, 2, 75}};
  return {{Phase::decode, 1, 40},  {Phase::decode, 3, 40},  {Phase::decode, 8, 40},   {Phase::decode, 16, 40},
          {Phase::decode, 64, 40}, {Phase::decode, 128, 9}, {Phase::prefill, 1, 100}, {Phase::prefill, 4, 128}};
}

[[nodiscard]] std::vector<ModelShape> models_of(GridSize size) {
  if (size == GridSize::quick) return {llama("llama", 8, 2, 128, 1536), bloom(10, 80, 1600)};
  return {llama("small", 8, 2, 64, 1408),
          llama("llama", 16, 4, 128, 5632),
          llama("odd", 12, 4, 80, 2560),
          llama("narrow", 9, 3, 64, 1536),
          bloom(16, 64, 4096),
          bloom(10, 80, 1600),
          llama("one head", 16, 1, 128, 3072)};
}

// What the layers' matrices are stored in: plain, rounded to bytes with the activations, or packed.
[[nodiscard]] std::vector<EngineOptions> formats() {
  std::vector<EngineOptions> all(4);
  all[0].weights = {Dtype::f16, 0};
  all[1].weights = {Dtype::bf16, 0};
  all[2].weights = {Dtype::int8, -1};
  all[2].activations = ActivationMode::int8;
  all[3].weights = {Dtype::int4, 32};
  return all;
}

// Sequences that are decoded are not equally long, so that each has a position of its own.
[[nodiscard]] Batch kernel_batch(const KernelCase& what) {
  Batch batch = uniform_batch(what.phase, what.batch, what.context);
  if (what.phase == Phase::decode)
    for (SequenceSlice& sequence : batch.sequences) sequence.num_computed_tokens += static_cast<int>(sequence.id);
  return batch;
}

void add_ops(std::vector<KernelCase>& cases, const KernelCase& step, const std::vector<std::string>& ops) {
  for (const std::string& op : ops) {
    cases.push_back(step);
    cases.back().op = op;
  }
}

[[nodiscard]] double ratio(const sim::ComparedLevel& level) { return level.closed_form / level.replayed; }

}  // namespace

std::string KernelCase::text() const {
  return op + " of " + model.name + " " + std::to_string(model.hidden_size) + ", " +
         std::string(name(options.weights.dtype)) + ", KV " + std::string(name(options.kv_cache_dtype)) + ", " +
         (phase == Phase::decode ? "decode " : "prefill ") + std::to_string(batch) + " x " + std::to_string(context);
}

bool KernelOutcome::dram_holds() const { return std::abs(ratio(comparison.levels.back()) - 1) <= 0.10; }

bool KernelOutcome::l2_holds() const {
  return std::abs(ratio(comparison.levels[comparison.levels.size() - 2]) - 1) <= 0.10;
}

bool KernelOutcome::l2_hit_holds() const {
  const sim::ComparedLevel& l2 = comparison.levels[comparison.levels.size() - 2];
  return std::abs(l2.closed_hit_rate - l2.replayed_hit_rate) <= 0.05;
}

std::string KernelOutcome::text() const {
  const sim::ComparedLevel& l2 = comparison.levels[comparison.levels.size() - 2];
  return what.text() + " on " + machine + ": closed form / replayed " + std::to_string(ratio(l2)) + " at L2, " +
         std::to_string(ratio(comparison.levels.back())) + " at DRAM, hit rate " + std::to_string(l2.closed_hit_rate) +
         " and " + std::to_string(l2.replayed_hit_rate) + "\n";
}

void replay_kernels(const std::vector<KernelCase>& cases, const std::vector<sim::Machine>& machines,
                    const std::function<void(const KernelOutcome&)>& report) {
  for (const KernelCase& what : cases) {
    std::map<std::pair<int, lower::dculab_gpu::Units>, engine::RecordedOp> recorded;  // by wave size and units
    for (const sim::Machine& machine : machines) {
      const std::pair build{machine.waves.wave_size, lower::dculab_gpu::units_of(machine)};
      if (!recorded.contains(build))
        recorded.emplace(
            build, engine::record_op(what.model, what.options, kernel_batch(what), what.op, build.first, build.second));
      const engine::RecordedOp& op = recorded.at(build);
      if (lower::dculab_gpu::calls_library(op.op(), machine)) continue;  // none of our kernels runs there
      report({what, machine.name, sim::compare_with_replay(machine, op.plan, op.launches, sim::ReuseMeasurement::off)});
    }
  }
}

std::vector<sim::Machine> kernel_machines() {
  std::vector<sim::Machine> machines = grid_machines();
  std::erase_if(machines, [](const sim::Machine& machine) {
    return machine.name != "mi50" && machine.name != "mi210" && machine.name != "a100-80gb-sxm";
  });
  return machines;
}

std::vector<KernelCase> kernel_grid(GridSize size) {
  std::vector<KernelCase> cases;
  for (const ModelShape& model : models_of(size))
    for (const auto& [phase, batch, context] : rows_of(size)) {
      KernelCase step{{}, model, formats().front(), phase, batch, context};
      add_ops(cases, step, elementwise_ops(model));
      step.options.kv_cache_dtype = Dtype::fp8_e4m3;
      add_ops(cases, step, {"rope_and_cache"});
      for (const EngineOptions& format : formats()) {
        step.options = format;
        add_ops(cases, step, products(model));
      }
    }
  return cases;
}

}  // namespace dculab
