#include "engine/recording/op_recorder.hpp"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "engine/checkpoint/model_weights.hpp"
#include "engine/executors/gpu_executor.hpp"
#include "engine/kv/kv_layouts.hpp"
#include "engine/measure/scattered_batch.hpp"
#include "engine/recording/quantized_matmul.hpp"
#include "kernels/gpu/open_device.hpp"
#include "model/plan_step.hpp"

namespace dculab::engine {
namespace {

constexpr int kShortVocabulary = 256;

// The layers' ops are alike, but for the norm that begins one: in the first layer it has nothing to add to the
// residual, so that the second is recorded. Only the head needs the whole vocabulary.
[[nodiscard]] ModelShape few_layers(ModelShape model, const Op& op) {
  constexpr int kNarrowExperts = 8;  // of routed experts, whose products are not recorded
  LayerKind kind = model.kinds[op.layer_kind];
  if (kind.experts) kind.experts->intermediate_size = kNarrowExperts;
  set_layers(model, op.adds_layer_before ? 2 : 1, std::move(kind));
  model.quantization.reset();  // see plain_dtype()
  if (op.weight != WeightSlot::lm_head && op.weight != WeightSlot::embed_tokens)
    model.vocab_size = std::min(model.vocab_size, kShortVocabulary);
  return model;
}

// Of the weights: where what is computed decides on addresses, at random.
enum class Values : std::uint8_t { zeros, random };

// All weights are the same, as long as the largest. As in the plan, embedding, norms and head are in the model's dtype,
// the matrices of the layer in `layer_dtype`.
[[nodiscard]] ModelWeights alike_weights(const ModelShape& model, Dtype layer_dtype, Values values) {
  ModelWeights weights;
  weights.shape = model;
  std::size_t most = 0;
  const std::vector<TensorSlot> slots = tensor_slots(weights);
  for (const TensorSlot& slot : slots) most = std::max(most, slot.values());
  const int widest = std::max(bits(layer_dtype), bits(model.dtype));  // biases are F32, but far shorter
  auto all = std::make_shared<std::vector<std::byte>>(most * static_cast<std::size_t>(widest) / 8);
  if (values == Values::random) fill_randomly(*all, model.dtype, 1);
  for (const TensorSlot& slot : slots) {
    const bool is_layer_matrix = slot.kind == SlotKind::matrix && is_of_layer(slot.slot) && !slot.is_plain;
    *slot.view = {all->data(), slot.widened ? Dtype::f32 : is_layer_matrix ? layer_dtype : model.dtype, slot.rows};
  }
  tie_head(weights);
  weights.memory.emplace_back(std::move(all));
  return weights;
}

// Quantized matrices are recorded by themselves, and the other ops do not read them.
[[nodiscard]] Dtype plain_dtype(const ModelShape& model, WeightFormat layers) {
  return bits(layers.dtype) < 16 ? model.dtype : layers.dtype;
}

[[nodiscard]] bool is_attention(OpKind kind) {
  return kind == OpKind::attention_prefill || kind == OpKind::attention_decode;
}

[[nodiscard]] StepPlan only(StepPlan plan, std::string_view op_name) {
  std::string known;
  for (const Op& op : plan.ops) known += (known.empty() ? "" : ", ") + std::string(op.name);
  std::erase_if(plan.ops, [op_name](const Op& op) { return op.name != op_name; });
  if (plan.ops.empty()) throw InputError("this step has no op '" + std::string(op_name) + "'; it has " + known);
  return plan;
}

// Attention over chosen blocks walks the lists that the choice makes of queries.
[[nodiscard]] bool goes_by_values(const Op& op, const KvRetention& retention) {
  return op.kind == OpKind::attention_decode && kv_policy(retention.policy).has_budget;
}

// The ops of the step that come before the first one of that name.
[[nodiscard]] StepPlan before(StepPlan plan, std::string_view op_name) {
  plan.ops.erase(std::ranges::find(plan.ops, op_name, &Op::name), plan.ops.end());
  return plan;
}

// Whether two ops of one name, of different kinds of layers, ask for the same addresses.
[[nodiscard]] bool are_alike(const Op& a, const Op& b, const ModelShape& model) {
  return a.kind == b.kind && a.m == b.m && a.n == b.n && a.k == b.k && a.weight_format == b.weight_format &&
         a.groups.count == b.groups.count && model.kinds[a.layer_kind].attention == model.kinds[b.layer_kind].attention;
}

// That of the last kind of layers that has it: the first layer adds nothing to the residual.
[[nodiscard]] Op op_of(const ModelShape& model, const EngineOptions& options, const Batch& batch,
                       std::string_view op_name) {
  const StepPlan plan = only(plan_step(model, options, batch), op_name);
  for (const Op& op : plan.ops)
    if (!are_alike(op, plan.ops.front(), model))
      throw InputError("op '" + std::string(op_name) + "' of " + model.name +
                       " is another in layers of another kind, of which an address trace does not tell one from the "
                       "other; replay another op");
  return plan.ops.back();
}

void require_recordable(const Op& op, const ModelShape& layer) {
  const bool is_absorbed = op.weight == WeightSlot::kv_b_proj && op.groups.count > 0;
  const auto refuse = [&op](const std::string& why) { throw InputError("op '" + std::string(op.name) + "' " + why); };
  if (op.kind == OpKind::route_tokens || op.kind == OpKind::combine_experts || (op.groups.count > 0 && !is_absorbed))
    refuse("goes by the experts that tokens choose, which a replay does not know; replay another op");
  if (layer.has_latents() && !is_absorbed &&
      (op.weight == WeightSlot::kv_b_proj || (is_attention(op.kind) && !op.attention.is_latent)))
    refuse(
        "of latents that are expanded runs with others, piece by piece, which a replay does not know; replay those "
        "that are absorbed (attention.prefill_latents, .decode_latents), or another op");
  const Dtype stored = op.weight_format.dtype;
  if (op.kind != OpKind::matmul || bits(stored) >= 16) return;
  if (is_absorbed)
    refuse("with weights of " + std::string(name(stored)) + " is not recorded; replay it with weights of f16 or bf16");
  if (stored != Dtype::fp8_e4m3 && !is_integer(stored))
    refuse("with weights of " + std::string(name(stored)) + " is not recorded; replay weights of another format");
}

[[nodiscard]] GpuExecutorOptions executor_options(const EngineOptions& options, const Batch& batch) {
  return {.activation_dtype = options.activation_dtype,
          .partition_tokens = options.attention_split.partition_tokens,
          .limits = {.max_num_batched_tokens = tokens_of(batch),
                     .max_num_seqs = static_cast<int>(batch.sequences.size()),
                     .decode_tokens = decode_tokens_of(batch),
                     .prefill_latents = options.prefill_latents}};
}

// Of one execution of `op`, of the last layer. Ops that it goes by run before it, and once more without it, which says
// how many launches are theirs.
[[nodiscard]] std::vector<AddressTrace> launches_of(GpuExecutor& executor,
                                                    kernels::gpu::host::AddressRecorder& recorder, StepPlan before,
                                                    const Op& op) {
  std::size_t launched_before = 0;
  if (!before.ops.empty()) {
    (void)executor.run(before);
    launched_before = recorder.take_launches().size();
  }
  before.ops.push_back(op);
  (void)executor.run(before);
  std::vector<AddressTrace> launches = recorder.take_launches();
  const auto own = static_cast<std::ptrdiff_t>(launches.size() - launched_before) / op.count;
  launches.erase(launches.begin(), launches.end() - own);
  return launches;
}

}  // namespace

RecordedOp record_op(const ModelShape& model, const EngineOptions& options, const Batch& batch,
                     std::string_view op_name, int wave_size, lower::dculab_gpu::Units units) {
  const ModelShape layer = few_layers(model, op_of(model, options, batch, op_name));
  std::mt19937_64 random(1);
  const int num_blocks = blocks_of(batch, options.block_size);
  const StepPlan step =
      plan_step(layer, options, scattered_batch(batch, layer, options.block_size, num_blocks, random));
  const StepPlan plan = only(step, op_name);

  const Op& op = plan.ops.front();
  require_recordable(op, layer);
  if (op.kind == OpKind::matmul && bits(op.weight_format.dtype) < 16)
    return {plan, record_quantized_matmul(op, wave_size)};

  const bool by_values = goes_by_values(op, options.kv_retention);
  kernels::gpu::host::AddressRecorder recorder;
  using kernels::gpu::host::HostMatrixCores;
  const auto cores = units == lower::dculab_gpu::Units::matrix ? HostMatrixCores::present : HostMatrixCores::absent;
  GpuExecutor executor(
      kernels::gpu::open_host_device({.wave_size = wave_size, .recorder = &recorder, .matrix_cores = cores}),
      alike_weights(layer, plain_dtype(layer, options.weights), by_values ? Values::random : Values::zeros),
      {.num_blocks = num_blocks,
       .block_size = options.block_size,
       .dtype = options.kv_cache_dtype,
       .max_num_seqs = static_cast<int>(batch.sequences.size()),
       .residual_tokens = options.kv_residual_tokens,
       .policy = options.kv_retention.policy},
      executor_options(options, batch));
  executor.set_op_timing(OpTiming::off);
  if (by_values || drops_tokens(options.kv_retention.policy) || quantizes_together(options.kv_cache_dtype))
    executor.fill_kv_cache(1);  // no step has computed it
  StepPlan first = step;
  if (!by_values) first.ops.clear();
  return {plan, launches_of(executor, recorder, before(std::move(first), op_name), op)};
}

}  // namespace dculab::engine
