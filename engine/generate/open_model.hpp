// A model on a device with the KV blocks it is given: what serving, generating and evaluating start from.
#pragma once

#include <memory>
#include <optional>

#include "core/engine_options.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/executors/open_executor.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

struct GeneratorOptions {
  EngineOptions engine;  // weights are overwritten: the model decides; on the CPU also activation_dtype
  DeviceChoice device{};
  int num_threads = 0;                   // CPU: 0 = all cores
  std::optional<Bytes> kv_cache_memory;  // absent: what max_num_seqs full contexts need, but at most
                                         // gpu_memory_utilization of the memory that is free
  WeightMemory weight_memory = WeightMemory::huge_pages;
};

// The options as the model and the device make them. Throws InputError for what they cannot do.
[[nodiscard]] EngineOptions served_options(const GeneratorOptions& asked, const ModelShape& shape);

// KV blocks that GeneratorOptions ask for, on a device with `free_memory` left for them. Throws InputError when not
// even one fits.
[[nodiscard]] int choose_num_blocks(const ModelShape& model, const EngineOptions& options,
                                    std::optional<Bytes> kv_cache_memory, Bytes free_memory);

// The KV cache that GeneratorOptions ask for: of each of `executors` that share the memory. Throws as
// choose_num_blocks().
[[nodiscard]] KvCacheOptions kv_cache_options(const OpenDevice& device, const ModelShape& shape,
                                              const EngineOptions& options, const GeneratorOptions& asked,
                                              int executors = 1);

// `options` are served_options().
[[nodiscard]] std::unique_ptr<ModelExecutor> open_model(ModelWeights weights, const EngineOptions& options,
                                                        const GeneratorOptions& asked);

// Worker threads that are asked for: 0 means all cores. Throws InputError for fewer.
[[nodiscard]] int thread_count(int wanted);

}  // namespace dculab::engine
