#include "study/validate/published_points.hpp"

#include <algorithm>
#include <array>

#include "core/attention_work.hpp"
#include "core/error.hpp"
#include "engine/checkpoint/model_config.hpp"
#include "sim/study/serving_recipe.hpp"
#include "study/scenario/locate.hpp"
#include "study/validate/published_weights.hpp"

namespace dculab::study {
namespace {

using config::PointKind;
using config::PublishedPoint;

[[nodiscard]] bool has_matrix_cores(const sim::Machine& machine) {
  const auto half = machine.peaks.find(Dtype::f16);
  return half != machine.peaks.end() && half->second.matrix.has_value();
}

// llama.cpp multiplies its quantized weights in INT8 where there are no matrix cores (ggml-cuda/mmq.cu: activations are
// rounded, sums scaled group by group), and in F16 where there are.
[[nodiscard]] ActivationMode activation_mode(const PublishedWeights& weights, const sim::Machine& machine) {
  if (is_quantized_gguf(weights.published) && !has_matrix_cores(machine)) return ActivationMode::int8;
  return ActivationMode::exact;
}

// FP8 checkpoints multiply in FP8, other narrow weights are widened to F16.
[[nodiscard]] Dtype activation_dtype(const PublishedWeights& weights) {
  if (weights.format.dtype == Dtype::fp8_e4m3) return Dtype::fp8_e4m3;
  return bits(weights.format.dtype) >= 16 ? weights.format.dtype : Dtype::f16;
}

// What an engine does unless told otherwise.
struct EngineDefaults {
  std::string_view software;  // how its name starts, in any case
  int max_num_batched_tokens;
  int max_num_seqs;
  sim::Split split;
  lower::KernelLibrary attention;  // decode
  double kernels;                  // that it launches for one of ours
};
// llama.cpp's graph of a Llama layer has 31 kernels where the plan has 10: norms and their weights, Q, K, V, gate and
// up apart, activations rounded before each product, residuals added apart (src/llama.cpp build_llama, ggml-cuda.cu).
constexpr std::array<EngineDefaults, 7> kEngines{{
    {"TensorRT-LLM", 8192, 2048, sim::Split::tensor, lower::KernelLibrary::flash_attention,
     1},                                                                             // max_num_tokens, max_batch_size
    {"llama.cpp", 512, 256, sim::Split::layers, lower::KernelLibrary::per_head, 3},  // n_ubatch; --split-mode layer
    {"gpt-fast", 1 << 20, 1, sim::Split::tensor, lower::KernelLibrary::flash_attention, 1},  // the whole prompt at once
    {"vLLM", 2048, 256, sim::Split::tensor, lower::KernelLibrary::flash_attention,
     1},  // max_num_batched_tokens, max_num_seqs
    {"PyTorch", 2048, 256, sim::Split::tensor, lower::KernelLibrary::flash_attention, 1},  // kernels, as those of vidur
    {"vidur", 2048, 256, sim::Split::tensor, lower::KernelLibrary::flash_attention, 1},
    {"", 2048, 256, sim::Split::tensor, lower::KernelLibrary::flash_attention, 1},
}};

[[nodiscard]] const EngineDefaults& engine_defaults(const std::string& software) {
  const std::string written = lower_case(software);
  return *std::ranges::find_if(kEngines, [&written](const EngineDefaults& engine) {
    return written.starts_with(lower_case(std::string(engine.software)));
  });
}

// vLLM's FlashAttention takes blocks of a multiple of 16 tokens. Others are walked by its own paged kernels, on AMD all
// blocks: vllm/attention/backends/rocm_flash_attn.py. AMD's own builds, which have ROCm in their names, bring kernels
// that serve a group at once.
[[nodiscard]] lower::Kernels kernels_of(const std::string& software, const sim::Machine& machine) {
  using enum lower::KernelLibrary;
  const EngineDefaults& engine = engine_defaults(software);
  lower::Kernels kernels{{vendor_gemm}, {engine.attention}};
  if (engine.software != "vLLM") return kernels;
  const bool amd = machine.waves.wave_size == 64;
  const bool amds_build = lower_case(software).find("rocm") != std::string::npos;
  if (amd && !amds_build) kernels.attention.clear();
  kernels.attention.push_back(paged_attention);
  return kernels;
}

// llama.cpp keeps activations in F32, in kernels of their own, and without -fa its scores too. Matrix cores get F16:
// activations are narrowed and results widened around every product, and quantized weights are widened into memory
// first where there are more rows than its integer kernels take (ggml-cuda.cu: ggml_cuda_op_mul_mat_cublas,
// MMQ_MAX_BATCH_SIZE). Bytes: F16 in, F32 to F16 and back for each value, 2 written and 2 read a weight, F32 scores
// written, scaled and masked, and read.
[[nodiscard]] sim::UnfusedWork unfused_work(const PublishedWeights& weights, const EngineDefaults& engine,
                                            const sim::Machine& machine) {
  if (engine.software != "llama.cpp") return {};
  constexpr int kMostIntegerRows = 64;
  sim::UnfusedWork work{.activation_scale = 4, .bytes_per_score = 16};
  if (bits(weights.format.dtype) < 16 && has_matrix_cores(machine)) {
    work.bytes_per_widened_weight = 4;
    work.widened_from_rows = kMostIntegerRows + 1;
  }
  return work;
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
  const EngineDefaults& engine = engine_defaults(point.software);
  sim::Server server{.machine = machine,
                     .model = published_model(point.model),
                     .options = {},
                     .devices = point.devices,
                     .split = engine.split};
  server.model.dtype = weights.head;
  server.options.weights = weights.format;
  server.options.activation_dtype = activation_dtype(weights);
  server.options.activations = activation_mode(weights, machine);
  server.options.kv_cache_dtype = published_dtype(point.kv_dtype, Dtype::f16);
  server.options.block_size = point.kv_block_size.value_or(server.options.block_size);
  server.options.max_num_batched_tokens = engine.max_num_batched_tokens;
  server.options.max_num_seqs = engine.max_num_seqs;
  server.unfused = unfused_work(weights, engine, machine);
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
  if (point.kind == PointKind::offline_output_rate) recipe.tokens = static_cast<double>(requests) * output;
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
  }
  return served_recipe(point, published_server(point, machine));
}

}  // namespace

std::string engine_of(const std::string& software) {
  const std::string_view known = engine_defaults(software).software;
  return known.empty() ? lower_case(software.substr(0, software.find(' '))) : std::string(known);
}

sim::Machine as_run_by(const std::string& software, const sim::Machine& machine) {
  sim::Machine result = machine;
  result.overheads.kernel_launch *= engine_defaults(software).kernels;
  result.stack.kernels = kernels_of(software, machine);
  return result;
}

PricedAs price_as(const PublishedPoint& point, const sim::Machine& machine) {
  PricedAs priced{recipe_of(point, machine), ""};
  if (!point.weights.empty()) priced.note = published_weights(point.weights).note;
  return priced;
}

}  // namespace dculab::study
