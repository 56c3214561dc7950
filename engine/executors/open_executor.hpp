// From what the user calls a device to an executor on it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/engine_options.hpp"
#include "engine/checkpoint/model_weights.hpp"
#include "engine/executors/model_executor.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "kernels/gpu/device.hpp"

namespace dculab::engine {

enum class DeviceKind : std::uint8_t { cpu, host_gpu, hip, cuda };

struct DeviceChoice {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;  // hip and cuda
};

// "cpu", "host-gpu", "hip:N" or "cuda:N"; throws InputError.
[[nodiscard]] DeviceChoice parse_device(std::string_view text);

// A device that is open; `gpu` is null for the CPU.
struct OpenDevice {
  DeviceChoice choice;
  std::shared_ptr<kernels::gpu::Device> gpu;
  std::shared_ptr<kernels::cpu::ThreadPool> threads{};  // CPU: of all executors on it; null: each has its own

  // Memory that weights and KV cache can take.
  [[nodiscard]] Bytes free_memory() const;
};

// Throws InputError when there is no such device, or the program was built without it.
[[nodiscard]] OpenDevice open_device(const DeviceChoice& choice);

// Threads of the CPU that several executors will take turns with; does nothing on a GPU. Fewer than `num_threads` where
// the system gives no more. `cpus`: theirs among those of teams that work beside each other. For use by the thread that
// calls.
void share_threads(OpenDevice& device, int num_threads, kernels::cpu::CpuShare cpus = {});

// Memory that an executor takes besides the KV pool: what latents expand to, and what the policy keeps of max_num_seqs
// sequences; on a GPU also weights, activations, inputs and workspace. On the CPU the weights are in memory already.
[[nodiscard]] Bytes memory_besides_kv(const OpenDevice& device, const ModelShape& model, const EngineOptions& options);

// `options` completed with what the device's kernels do: activation_dtype (f32 on the CPU). Throws
// InputError for what they do not: see KvFeature::gpu.
[[nodiscard]] EngineOptions options_on(const DeviceChoice& device, EngineOptions options);

[[nodiscard]] std::unique_ptr<ModelExecutor> make_executor(const OpenDevice& device, ModelWeights weights,
                                                           const KvCacheOptions& kv_cache, const EngineOptions& options,
                                                           int num_threads);

}  // namespace dculab::engine
