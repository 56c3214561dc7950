#include "study/validate/published_points.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "config/gguf_format.hpp"
#include "core/error.hpp"
#include "core/letter_case.hpp"
#include "model/attention_work.hpp"
#include "model/folder/model_config.hpp"
#include "model/plan_step.hpp"
#include "sim/study/serving_run.hpp"
#include "study/scenario/locate.hpp"
#include "study/validate/published_experts.hpp"
#include "study/validate/published_hardware.hpp"
#include "study/validate/published_weights.hpp"

namespace dculab::study {
namespace {

using config::PointKind;
using config::PublishedPoint;

constexpr int kRoundsOfALoop = 4;  // of a closed loop, whose length is not published: its ends count for little

// A script that starts SGLang's bench_serving for each number of concurrent requests sends just that many, all at once:
// --num-prompts and --request-rate of code/tencent_client.sh, ZhangFanYi/ZhangFanYi.github.io@864e03d3,
// 07-deepseek-v4-flash.
[[nodiscard]] int rounds_of(const PublishedPoint& point) {
  return point.notes.find("bench_serving") != std::string::npos ? 1 : kRoundsOfALoop;
}

// llama.cpp multiplies its quantized weights in INT8 where there are no matrix cores (ggml-cuda/mmq.cu: activations are
// rounded, sums scaled group by group), and in F16 where there are.
[[nodiscard]] ActivationMode activation_mode(const PublishedWeights& weights, const ModelShape& model,
                                             const sim::Machine& machine) {
  if (config::find_gguf_format(std::string(weights.published)) != nullptr && !machine.has_matrix_cores)
    return ActivationMode::int8;
  if (weights.format.dtype != Dtype::fp8_e4m3) return ActivationMode::exact;
  return lower::activations_of(machine.stack.kernels, weights.format, ActivationMode::fp8, model.has_experts(),
                               machine);
}

// Of int8, both are: the programs say it in their notes.
[[nodiscard]] bool rounds_activations(const PublishedPoint& point) {
  return point.notes.find("W8A8") != std::string::npos;
}

// vLLM gives a model with recurrent layers blocks as large as a state, 784 tokens say, which attention kernels take as
// several of a power of two (vllm/v1/worker/utils.py, select_common_block_size).
[[nodiscard]] int kernel_block_size(int block_size) {
  const unsigned size = static_cast<unsigned>(block_size);
  return block_size > 0 && !std::has_single_bit(size) ? static_cast<int>(size & -size) : block_size;
}

// FP8 checkpoints multiply in FP8, other narrow weights are widened to F16.
[[nodiscard]] Dtype activation_dtype(const PublishedWeights& weights) {
  if (weights.format.dtype == Dtype::fp8_e4m3) return Dtype::fp8_e4m3;
  return bits(weights.format.dtype) >= 16 ? weights.format.dtype : Dtype::f16;
}

[[nodiscard]] int needed(const std::optional<int>& value, const char* column) {
  if (!value || *value < 1) throw InputError(std::string("column ") + column + " is missing");
  return *value;
}

[[nodiscard]] Heads published_heads(const PublishedPoint& point) {
  const Heads heads{needed(point.heads, "heads"), needed(point.kv_heads, "kv_heads"),
                    needed(point.head_size, "head_size")};
  if (heads.num_attention_heads % heads.num_key_value_heads != 0) throw InputError("heads is no multiple of kv_heads");
  return heads;
}

// A model of one layer, of whose plan only some ops are used.
[[nodiscard]] ModelShape one_layer(int hidden_size, const Gqa& attention) {
  ModelShape model{.hidden_size = hidden_size, .vocab_size = 1};
  set_layers(model, 1, {.attention = attention, .mlp = {.intermediate_size = 1}});
  return model;
}

// The kernel that writes new K and V to their slots, rotated already. vLLM's attention layer begins with it, and is
// timed as a whole (ai-dynamo/aiconfigurator, collector/vllm/collect_attn.py: impl.forward).
[[nodiscard]] Op cache_write(const Heads& heads, const EngineOptions& options, const Batch& batch) {
  const Gqa rotated{.heads = heads, .position = {.kind = PositionKind::alibi}};
  const StepPlan plan = plan_step(one_layer(1, rotated), options, batch);
  return *std::ranges::find(plan.ops, OpKind::rope_and_cache, &Op::kind);
}

// The new tokens of each sequence and what it has then: a prompt may be the rest of a longer context.
[[nodiscard]] Batch attention_batch(const PublishedPoint& point, Phase phase) {
  if (phase == Phase::decode && point.prompt_tokens.value_or(1) > 1)
    throw InputError("decodes of several tokens at a time are not predicted yet");
  const int tokens = phase == Phase::decode ? needed(point.context_tokens, "context_tokens")
                                            : needed(point.prompt_tokens, "prompt_tokens");
  Batch batch = uniform_batch(phase, point.batch.value_or(1), tokens);
  const int before = phase == Phase::decode ? 0 : std::max(tokens, point.context_tokens.value_or(0)) - tokens;
  for (SequenceSlice& sequence : batch.sequences) sequence.num_computed_tokens += before;
  return batch;
}

// A whole context is one block where nothing cuts it up.
[[nodiscard]] int block_size(const PublishedPoint& point, const PublishedSoftware& software, const Batch& batch) {
  if (point.kv_block_size) return *point.kv_block_size;
  if (software.layout == KvLayout::paged) return EngineOptions{}.block_size;
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(batch.sequences.front().context_tokens())));
}

[[nodiscard]] sim::MeasuredRun attention_run(const PublishedPoint& point, const PublishedSoftware& software) {
  const Phase phase = point.kind == PointKind::attention_decode ? Phase::decode : Phase::prefill;
  const Heads heads = published_heads(point);
  StepPlan kernels;
  kernels.batch = attention_batch(point, phase);
  EngineOptions options;
  options.block_size = block_size(point, software, kernels.batch);
  options.kv_cache_dtype = published_dtype(point.kv_dtype, Dtype::f16);
  options.activation_dtype = bits(options.kv_cache_dtype) >= 16 ? options.kv_cache_dtype : Dtype::bf16;
  kernels.ops.push_back(plan_attention({.heads = heads}, options, kernels.batch, phase));
  if (software.timing == KernelTiming::after_cache_write)
    kernels.ops.push_back(cache_write(heads, options, kernels.batch));
  return sim::kernel_run(std::move(kernels));
}

// A library multiplies bytes as it multiplies FP8: both operands are.
[[nodiscard]] Dtype multiplied(const PublishedWeights& weights) {
  return weights.format.dtype == Dtype::int8 && weights.bits == 0 ? Dtype::int8 : activation_dtype(weights);
}

// y[m, n] = x[m, k] w[n, k]^T is the o_proj of a model with n features and one head of k.
[[nodiscard]] sim::MeasuredRun matmul_run(const PublishedPoint& point, const PublishedSoftware& software) {
  const PublishedWeights weights = published_weights(point.weights);
  const ModelShape model = one_layer(needed(point.n, "n"), {.heads = {1, 1, needed(point.k, "k")}});
  EngineOptions options;
  options.weights = weights.format;
  options.activation_dtype = multiplied(weights);
  StepPlan plan = plan_step(model, options, uniform_batch(Phase::prefill, 1, needed(point.m, "m")));
  std::erase_if(plan.ops, [](const Op& op) { return op.weight != WeightSlot::o_proj; });
  sim::MeasuredRun measured_run = sim::kernel_run(std::move(plan));
  // It times the products of a layer in turn (vidur/profiling/mlp/mlp_wrapper.py).
  if (software.timing == KernelTiming::in_turn) measured_run.timed = sim::Timed::cold_kernel;
  return measured_run;
}

// DeepSeek-V4's caches are of FP8 unless the server is told otherwise: sgl-project/sglang@000328a8,
// arg_groups/deepseek_v4_hook.py.
[[nodiscard]] Dtype cache_dtype(const PublishedPoint& point, const ModelShape& model) {
  return published_dtype(point.kv_dtype, model.has_compressed_entries() ? Dtype::fp8_e4m3 : Dtype::f16);
}

[[nodiscard]] ModelShape published_model(const std::string& name) {
  const std::string written = lower_case(name);
  for (const std::string& each : {written, name})  // a folder's name keeps its letters
    if (const auto folder = try_find_model(each)) return read_model_shape(*folder);
  throw InputError("no model '" + written + "' under scenarios/models");
}

}  // namespace

sim::Server published_server(const PublishedPoint& point, const sim::Machine& machine) {
  const ModelShape model = published_model(point.model);  // first: a model without a price is the reason to name
  const PublishedWeights weights = published_weights(point.weights);
  const sim::ProgramDefaults& program = machine.stack.defaults;
  sim::Server server{.machine = machine, .model = model, .options = {}, .devices = point.devices};
  server.model.dtype = weights.head;
  server.model.expert_quantization.reset();  // a row's weights are those of all products
  server.options.weights = weights.format;
  server.options.activation_dtype = weights.format.dtype == Dtype::fp8_e4m3 ? Dtype::bf16 : activation_dtype(weights);
  server.options.activations = activation_mode(weights, model, machine);
  server.options.kv_cache_dtype = cache_dtype(point, model);
  server.options.block_size = kernel_block_size(point.kv_block_size.value_or(server.options.block_size));
  if (rounds_activations(point)) {
    server.options.weights.group_size = -1;
    server.options.activations = ActivationMode::int8;
  }
  server.options.max_num_batched_tokens = program.max_num_batched_tokens;
  server.options.max_num_seqs = program.max_num_seqs;
  server.layer_weight_scale = weight_scale(weights);
  if (point.kind == PointKind::prefill_rate && point.context_tokens)
    server.options.max_num_batched_tokens = *point.context_tokens;
  if (point.kind == PointKind::serving_output_rate)
    server.options.max_num_seqs = std::min(server.options.max_num_seqs, point.batch.value_or(1));
  if (const auto found = problems(server); !found.empty()) throw InputError(found.front());
  return server;
}

namespace {

[[nodiscard]] sim::MeasuredRun served_run(const PublishedPoint& point, const sim::Server& server) {
  const bool is_closed_loop = point.kind == PointKind::serving_output_rate;
  const int requests = point.batch.value_or(1) * (is_closed_loop ? rounds_of(point) : 1);
  const int prompt = needed(point.prompt_tokens, "prompt_tokens");
  const int output = point.kind == PointKind::ttft ? 1 : needed(point.output_tokens, "output_tokens");
  sim::MeasuredRun measured_run = sim::served_requests(server, requests, prompt, output);
  if (is_closed_loop || point.kind == PointKind::offline_output_rate)
    measured_run.amount = static_cast<double>(requests) * output;
  return measured_run;
}

[[nodiscard]] sim::MeasuredRun decode_run(const PublishedPoint& point, const sim::Server& server) {
  const int last = needed(point.context_tokens, "context_tokens");
  const int steps = std::clamp(point.output_tokens.value_or(1), 1, last);
  return sim::decode(server, point.batch.value_or(1), last - steps + 1, last);
}

[[nodiscard]] sim::MeasuredRun engine_run(const PublishedPoint& point, const sim::Machine& machine,
                                          const PublishedSoftware& software) {
  if (software.is_library()) throw InputError(std::string(software.engine) + " is a kernel library: it serves nothing");
  const sim::Server server = published_server(point, machine);
  if (point.kind == PointKind::prefill_rate) return sim::prefill(server, needed(point.prompt_tokens, "prompt_tokens"));
  if (point.kind == PointKind::decode_rate) return decode_run(point, server);
  return served_run(point, server);
}

// A library has the kernels that it lists, and no other.
template <class Kernel>
void require_kernel(const std::vector<const Kernel*>& kernels, const PublishedSoftware& software, const char* what) {
  if (software.is_library() && kernels.empty())
    throw InputError("no " + std::string(what) + " of " + std::string(software.engine) + " is known");
}

[[nodiscard]] sim::MeasuredRun measured_run_of(const PublishedPoint& point, const sim::Machine& machine,
                                               const PublishedSoftware& software) {
  const lower::Kernels& kernels = machine.stack.kernels;
  switch (point.kind) {
    case PointKind::matmul:
      require_kernel(kernels.matmul, software, "matmul");
      return matmul_run(point, software);
    case PointKind::attention_decode:
      require_kernel(kernels.attention_decode, software, "decode attention");
      return attention_run(point, software);
    case PointKind::attention_prefill:
      require_kernel(kernels.attention_prefill, software, "prefill attention");
      return attention_run(point, software);
    case PointKind::fused_moe:
      require_kernel(kernels.experts, software, "kernel of a mixture of experts");
      return fused_moe_run(point);
    case PointKind::all_reduce:
      require_kernel(kernels.all_reduce, software, "all-reduce");
      return all_reduce_run(point, machine);
    default:
      return engine_run(point, machine, software);
  }
}

// Kernels that stand for others teach nothing of what those reach.
[[nodiscard]] std::string why_silent(const PublishedPoint& point, const PublishedSoftware& software) {
  const auto folder = point.model.empty() ? std::nullopt : try_find_model(lower_case(point.model));
  if (folder && read_model_shape(*folder).has_compressed_entries())
    return "other kernels stand for many of those that serve compressed entries and hyper-connections";
  return std::string(software.silent);
}

}  // namespace

PricedAs price_as(const PublishedPoint& point, const sim::Machine& machine, const PublishedSoftware* software) {
  if (software == nullptr) return {hardware_run(point, machine), "", ""};
  PricedAs priced{measured_run_of(point, machine, *software), std::string(software->note),
                  why_silent(point, *software)};
  if (point.weights.empty()) return priced;
  const std::string_view weights = published_weights(point.weights).note;
  return {std::move(priced.measured_run),
          priced.note + (priced.note.empty() || weights.empty() ? "" : "; ") + std::string(weights),
          std::move(priced.silent)};
}

}  // namespace dculab::study
