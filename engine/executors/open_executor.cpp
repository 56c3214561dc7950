#include "engine/executors/open_executor.hpp"

#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "engine/executors/cpu_executor.hpp"
#include "engine/executors/gpu_executor.hpp"
#include "engine/executors/gpu_requirements.hpp"
#include "engine/executors/thread_shortage.hpp"
#include "engine/memory/anonymous_memory.hpp"
#include "kernels/gpu/open_device.hpp"
#include "lower/dculab_cpu/expanded_kv.hpp"
#include "lower/kv/kv_memory.hpp"

namespace dculab::engine {
namespace {

[[nodiscard]] std::optional<int> parse_index(std::string_view text) {
  int index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || end != text.data() + text.size() || index < 0) return std::nullopt;
  return index;
}

[[nodiscard]] GpuStepLimits step_limits(const EngineOptions& options) {
  return {.max_num_batched_tokens = options.max_num_batched_tokens,
          .max_num_seqs = options.max_num_seqs,
          .decode_tokens = 1 + options.speculative_config.shape.num_tokens(),
          .prefill_latents = options.prefill_latents};
}

}  // namespace

DeviceChoice parse_device(std::string_view text) {
  if (text == "cpu") return {DeviceKind::cpu, 0};
  if (text == "host-gpu") return {DeviceKind::host_gpu, 0};
  const auto colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  if ((kind == "hip" || kind == "cuda") && colon != std::string_view::npos)
    if (const auto index = parse_index(text.substr(colon + 1)))
      return {kind == "hip" ? DeviceKind::hip : DeviceKind::cuda, *index};
  throw InputError("'" + std::string(text) + "' is not a device; use cpu, host-gpu, hip:0 or cuda:0");
}

Bytes OpenDevice::free_memory() const {
  return gpu == nullptr || choice.kind == DeviceKind::host_gpu ? available_memory() : gpu->info().free_memory;
}

OpenDevice open_device(const DeviceChoice& choice) {
  switch (choice.kind) {
    case DeviceKind::cpu:
      break;
    case DeviceKind::host_gpu:
      return {.choice = choice, .gpu = kernels::gpu::open_host_device({})};
    case DeviceKind::hip:
      return {.choice = choice, .gpu = kernels::gpu::open_hip_device(choice.index)};
    case DeviceKind::cuda:
      return {.choice = choice, .gpu = kernels::gpu::open_cuda_device(choice.index)};
  }
  return {.choice = choice, .gpu = nullptr};
}

void share_threads(OpenDevice& device, int num_threads, kernels::cpu::CpuShare cpus) {
  if (device.gpu != nullptr) return;
  device.threads = std::make_shared<kernels::cpu::ThreadPool>(num_threads, cpus);
  report_threads(device.threads->num_threads(), num_threads);
}

Bytes memory_besides_kv(const OpenDevice& device, const ModelShape& model, const EngineOptions& options) {
  const auto kind = device.gpu == nullptr ? lower::DeviceKind::cpu : lower::DeviceKind::gpu;
  const Bytes of_policy = lower::kv_policy_memory(kind, model, options) * options.max_num_seqs;
  if (device.gpu == nullptr) return lower::dculab_cpu::expanded_memory(model, KvCacheOptions{}.expanded_kv) + of_policy;
  require_gpu_runnable(model, options.activation_dtype, options.activations);
  return weight_footprint(model, options.weights) +
         gpu_step_memory(model, options.activation_dtype, step_limits(options),
                         options.attention_split.partition_tokens, options.block_size) +
         of_policy;
}

EngineOptions options_on(const DeviceChoice& device, EngineOptions options) {
  if (options.activations == ActivationMode::fp8)
    throw InputError("activations rounded to FP8 are predicted, not run; use exact");
  if (device.kind == DeviceKind::cpu) {
    options.activation_dtype = Dtype::f32;
    return options;
  }
  const std::vector<std::string> reasons = clashes(options.kv(), KvFeature::gpu);
  if (!reasons.empty()) throw InputError(reasons.front());
  return options;
}

std::unique_ptr<ModelExecutor> make_executor(const OpenDevice& device, ModelWeights weights,
                                             const KvCacheOptions& kv_cache, const EngineOptions& options,
                                             int num_threads) {
  if (device.threads != nullptr) return std::make_unique<CpuExecutor>(std::move(weights), kv_cache, device.threads);
  if (device.gpu == nullptr) return std::make_unique<CpuExecutor>(std::move(weights), kv_cache, num_threads);
  return std::make_unique<GpuExecutor>(device.gpu, weights, kv_cache,
                                       GpuExecutorOptions{.activation_dtype = options.activation_dtype,
                                                          .activations = options.activations,
                                                          .partition_tokens = options.attention_split.partition_tokens,
                                                          .limits = step_limits(options)});
}

}  // namespace dculab::engine
