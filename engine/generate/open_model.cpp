#include "engine/generate/open_model.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>

#include "core/activation_mode.hpp"
#include "core/block_pool.hpp"
#include "core/error.hpp"
#include "model/plan_step.hpp"

namespace dculab::engine {

int thread_count(int wanted) {
  if (wanted < 0) throw InputError("the number of threads must not be negative");
  return wanted > 0 ? wanted : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

EngineOptions served_options(const GeneratorOptions& asked, const ModelShape& shape) {
  EngineOptions options = options_on(asked.device, asked.engine);
  options.weights = shape.layer_format();
  if (const std::string found = problem(options.activations, shape); !found.empty())
    throw InputError("activations in " + std::string(name(options.activations)), found);
  if (const auto found = problems(options); !found.empty()) throw InputError(found.front());
  if (const auto found = problems(options, shape); !found.empty()) throw InputError(found.front());
  return options;
}

int choose_num_blocks(const ModelShape& model, const EngineOptions& options, std::optional<Bytes> kv_cache_memory,
                      Bytes free_memory) {
  const Bytes block = kv_block_bytes(model, options.block_size, options.kv_cache_dtype);
  const Bytes residuals =
      kv_residual_bytes(model, options.kv_cache_dtype, options.kv_residual_tokens) * options.max_num_seqs;
  const Bytes memory = kv_cache_memory.value_or(free_memory * options.gpu_memory_utilization);
  if (memory <= residuals && residuals > Bytes())
    throw InputError("the KV cache has no room for a single block beside " +
                     std::to_string(options.kv_residual_tokens) + " tokens in F16 for each of max_num_seqs " +
                     std::to_string(options.max_num_seqs) + " sequences; give it more memory or lower max_num_seqs");
  const double fit = (memory - residuals) / block;
  // With sinks positions are those within the cache; whatever the policy, a sequence holds no more than it keeps.
  const auto longest =
      std::min<std::int64_t>(model.max_position_embeddings, kv_capacity(options.kv_retention, options.block_size));
  const auto blocks_per_context = static_cast<double>((longest + options.block_size - 1) / options.block_size);
  const double useful = kv_cache_memory ? fit : std::min(fit, blocks_per_context * options.max_num_seqs);
  if (useful < 1) throw InputError("the KV cache has no room for a single block; give it more memory");
  return static_cast<int>(std::min<double>(useful, kMostBlocks));
}

KvCacheOptions kv_cache_options(const OpenDevice& device, const ModelShape& shape, const EngineOptions& options,
                                const GeneratorOptions& asked, int executors) {
  const double share = 1.0 / executors;
  std::optional<Bytes> memory = asked.kv_cache_memory;
  if (memory) *memory = *memory * share;
  const Bytes free = std::max(Bytes(), device.free_memory() * share - memory_besides_kv(device, shape, options));
  return {.num_blocks = choose_num_blocks(shape, options, memory, free),
          .block_size = options.block_size,
          .dtype = options.kv_cache_dtype,
          .max_num_seqs = options.max_num_seqs,
          .residual_tokens = options.kv_residual_tokens,
          .num_host_blocks =
              num_host_blocks(options, kv_block_bytes(shape, options.block_size, options.kv_cache_dtype))};
}

std::unique_ptr<ModelExecutor> open_model(ModelWeights weights, const EngineOptions& options,
                                          const GeneratorOptions& asked) {
  const OpenDevice device = open_device(asked.device);
  const KvCacheOptions kv = kv_cache_options(device, weights.shape, options, asked);
  return make_executor(device, std::move(weights), kv, options, thread_count(asked.num_threads));
}

}  // namespace dculab::engine
