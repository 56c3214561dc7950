#include "study/validate/published_points.hpp"

#include <algorithm>
#include <array>

#include "core/attention_work.hpp"
#include "core/error.hpp"
#include "engine/checkpoint/model_config.hpp"
#include "sim/study/serving_recipe.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/stacks.hpp"
#include "study/validate/published_weights.hpp"

namespace dculab::study {
namespace {

using config::PointKind;
using config::PublishedPoint;

constexpr const char* kUnknownProgram = "pytorch";  // a vendor's products and FlashAttention

// llama.cpp multiplies its quantized weights in INT8 where there are no matrix cores (ggml-cuda/mmq.cu: activations are
// rounded, sums scaled group by group), and in F16 where there are.
[[nodiscard]] ActivationMode activation_mode(const PublishedWeights& weights, const sim::Machine& machine) {
  if (is_quantized_gguf(weights.published) && !machine.has_matrix_cores) return ActivationMode::int8;
  return ActivationMode::exact;
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

// ModelShape whose attention is the kernel's; the rest of it is not used.
[[nodiscard]] ModelShape attention_shape(const PublishedPoint& point) {
  ModelShape model;
  model.num_hidden_layers = 1;
  model.num_attention_heads = needed(point.heads, "heads");
  model.num_key_value_heads = needed(point.kv_heads, "kv_heads");
  model.head_dim = needed(point.head_size, "head_size");
  if (model.num_attention_heads % model.num_key_value_heads != 0) throw InputError("heads is no multiple of kv_heads");
  return model;
}

// The kernel that writes new K and V to their slots, rotated already. vLLM's attention layer begins with it, and is
// timed as a whole (ai-dynamo/aiconfigurator, collector/vllm/collect_attn.py: impl.forward).
[[nodiscard]] Op cache_write(ModelShape model, const EngineOptions& options, const Batch& batch) {
  model.position = PositionKind::alibi;
  model.hidden_size = model.intermediate_size = model.vocab_size = 1;
  const StepPlan plan = plan_step(model, options, batch);
  return *std::ranges::find(plan.ops, OpKind::rope_and_cache, &Op::kind);
}

[[nodiscard]] sim::Recipe attention_recipe(const PublishedPoint& point) {
  const Phase phase = point.kind == PointKind::attention_decode ? Phase::decode : Phase::prefill;
  const int tokens = phase == Phase::decode ? needed(point.context_tokens, "context_tokens")
                                            : needed(point.prompt_tokens, "prompt_tokens");
  const ModelShape model = attention_shape(point);
  StepPlan kernels;
  kernels.batch = uniform_batch(phase, point.batch.value_or(1), tokens);
  EngineOptions options;
  options.block_size = point.kv_block_size.value_or(options.block_size);
  options.kv_cache_dtype = published_dtype(point.kv_dtype, Dtype::f16);
  options.activation_dtype = bits(options.kv_cache_dtype) >= 16 ? options.kv_cache_dtype : Dtype::bf16;
  kernels.ops.push_back(plan_attention(model, options, kernels.batch, phase));
  if (engine_of(point.software) == "vLLM") kernels.ops.push_back(cache_write(model, options, kernels.batch));
  return sim::kernel_recipe(std::move(kernels));
}

// y[m, n] = x[m, k] w[n, k]^T is the o_proj of a model with n features and one head of k.
[[nodiscard]] sim::Recipe matmul_recipe(const PublishedPoint& point) {
  const PublishedWeights weights = published_weights(point.weights);
  ModelShape model;
  model.hidden_size = needed(point.n, "n");
  model.head_dim = needed(point.k, "k");
  model.num_attention_heads = model.num_key_value_heads = model.num_hidden_layers = 1;
  model.intermediate_size = model.vocab_size = 1;
  EngineOptions options;
  options.weights = weights.format;
  options.activation_dtype = activation_dtype(weights);
  StepPlan plan = plan_step(model, options, uniform_batch(Phase::prefill, 1, needed(point.m, "m")));
  std::erase_if(plan.ops, [](const Op& op) { return op.name != "o_proj"; });
  sim::Recipe recipe = sim::kernel_recipe(std::move(plan));
  // It times the products of a layer in turn (vidur/profiling/mlp/mlp_wrapper.py).
  if (engine_of(point.software) == "vidur") recipe.timed = sim::Timed::cold_kernel;
  return recipe;
}

[[nodiscard]] ModelShape published_model(const std::string& name) {
  const auto folder = try_find_model(lower_case(name));
  if (!folder) throw InputError("no model '" + lower_case(name) + "' under scenarios/models");
  return engine::read_model_shape(*folder);
}

[[nodiscard]] sim::Server published_server(const PublishedPoint& point, const sim::Machine& machine) {
  const PublishedWeights weights = published_weights(point.weights);
  const sim::ProgramDefaults& program = machine.stack.defaults;
  sim::Server server{
      .machine = machine, .model = published_model(point.model), .options = {}, .devices = point.devices};
  server.model.dtype = weights.head;
  server.options.weights = weights.format;
  server.options.activation_dtype = activation_dtype(weights);
  server.options.activations = activation_mode(weights, machine);
  server.options.kv_cache_dtype = published_dtype(point.kv_dtype, Dtype::f16);
  server.options.block_size = point.kv_block_size.value_or(server.options.block_size);
  server.options.max_num_batched_tokens = program.max_num_batched_tokens;
  server.options.max_num_seqs = program.max_num_seqs;
  server.layer_weight_scale = weight_scale(weights);
  if (point.kind == PointKind::prefill_rate && point.context_tokens)
    server.options.max_num_batched_tokens = *point.context_tokens;
  if (const auto found = problems(server); !found.empty()) throw InputError(found.front());
  return server;
}

[[nodiscard]] sim::Recipe served_recipe(const PublishedPoint& point, const sim::Server& server) {
  const int requests = point.batch.value_or(1);
  const int prompt = needed(point.prompt_tokens, "prompt_tokens");
  const int output = point.kind == PointKind::ttft ? 1 : needed(point.output_tokens, "output_tokens");
  sim::Recipe recipe = sim::served_requests(server, requests, prompt, output);
  if (point.kind == PointKind::offline_output_rate) recipe.amount = static_cast<double>(requests) * output;
  return recipe;
}

[[nodiscard]] sim::Recipe decode_recipe(const PublishedPoint& point, const sim::Server& server) {
  const int last = needed(point.context_tokens, "context_tokens");
  const int steps = std::clamp(point.output_tokens.value_or(1), 1, last);
  return sim::decode(server, point.batch.value_or(1), last - steps + 1, last);
}

[[nodiscard]] sim::Recipe recipe_of(const PublishedPoint& point, const sim::Machine& machine) {
  switch (point.kind) {
    case PointKind::matmul:
      return matmul_recipe(point);
    case PointKind::attention_decode:
    case PointKind::attention_prefill:
      return attention_recipe(point);
    case PointKind::prefill_rate:
      return sim::prefill(published_server(point, machine), needed(point.prompt_tokens, "prompt_tokens"));
    case PointKind::decode_rate:
      return decode_recipe(point, published_server(point, machine));
    case PointKind::request_latency:
    case PointKind::ttft:
    case PointKind::offline_output_rate:
      break;
    default:
      throw InputError(std::string(config::name(point.kind)) + " is not priced yet");
  }
  return served_recipe(point, published_server(point, machine));
}

}  // namespace

std::string engine_of(const std::string& software) {
  const std::string written = lower_case(software);
  for (const char* known : {"TensorRT-LLM", "llama.cpp", "gpt-fast", "vLLM", "PyTorch", "vidur"})
    if (written.starts_with(lower_case(known))) return known;
  return lower_case(software.substr(0, software.find(' ')));
}

sim::Machine as_run_by(const std::string& software, sim::Machine machine, std::span<const sim::Stack> stacks) {
  const std::string written = lower_case(software);
  const sim::Stack* chosen = nullptr;
  std::size_t longest = 0;
  for (const sim::Stack& stack : stacks) {
    if (!sim::is_for(stack, machine)) continue;
    const std::vector<std::string> program{stack.program};
    for (const std::string& begin : stack.published_as.empty() ? program : stack.published_as) {
      if (begin.size() <= longest || !written.starts_with(lower_case(begin))) continue;
      chosen = &stack;
      longest = begin.size();
    }
  }
  machine.stack = sim::stack_on(machine, chosen != nullptr ? *chosen : choose_stack(stacks, kUnknownProgram, machine));
  return machine;
}

PricedAs price_as(const PublishedPoint& point, const sim::Machine& machine) {
  PricedAs priced{recipe_of(point, machine), ""};
  if (!point.weights.empty()) priced.note = published_weights(point.weights).note;
  return priced;
}

}  // namespace dculab::study
