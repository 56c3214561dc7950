// A model on a device with the KV blocks it is given, and who drafts for it: what serving, generating and evaluating
// start from.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "core/engine_options.hpp"
#include "core/scheduler.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/executors/open_executor.hpp"
#include "engine/parallel/division.hpp"
#include "engine/speculation/draft_source.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

struct GeneratorOptions {
  EngineOptions engine;  // weights are overwritten: the model decides; on the CPU also activation_dtype
  DeviceChoice device{};
  int num_threads = 0;                   // CPU: 0 = all cores
  Division division{};                   // CPU: processes that share the model, and the threads
  std::optional<Bytes> kv_cache_memory;  // absent: what max_num_seqs full contexts need, but at most
                                         // gpu_memory_utilization of the memory that is free
  WeightMemory weight_memory = WeightMemory::huge_pages;
  // Of engine.speculative_config: the folder of the draft model (or its weights) or of the Medusa heads; of mtp, of the
  // model itself.
  std::filesystem::path speculative_model{};
  std::optional<ModelWeights> draft_weights{};
};

// The options as the model and the device make them. Throws InputError for what they cannot do.
[[nodiscard]] EngineOptions served_options(const GeneratorOptions& asked, const ModelShape& shape);

// KV blocks that GeneratorOptions ask for, on a device with `free_memory` left for them. Each takes `draft_block` more,
// of a draft model. Throws InputError when not even one fits.
[[nodiscard]] int choose_num_blocks(const ModelShape& model, const EngineOptions& options,
                                    std::optional<Bytes> kv_cache_memory, Bytes free_memory, Bytes draft_block = {});

struct OpenModel {
  std::unique_ptr<ModelExecutor> executor;
  std::unique_ptr<ModelExecutor> few_heads{};  // of a model with two sets of KV heads: see add_few_heads
  DraftSource drafts{};

  // Of a server with these options: see DraftSource.
  [[nodiscard]] SchedulerLimits scheduler_limits() const;
};

// The weights that draft for `target`, as far as the method has any. Throws InputError where they are none for it.
[[nodiscard]] DraftWeights load_draft(const GeneratorOptions& asked, const EngineOptions& options,
                                      const ModelWeights& target);

// `options` are served_options().
[[nodiscard]] OpenModel open_model(ModelWeights weights, const EngineOptions& options, const GeneratorOptions& asked);

// The weights of the second set of KV heads: of `folder`, or where that is empty the means of the model's own, with the
// others shared. Throws InputError where they do not go with the model's.
[[nodiscard]] ModelWeights load_few_heads(const ModelWeights& many, int num_key_value_heads,
                                          const std::filesystem::path& folder, const EngineOptions& options);

// Lets a model with one set of KV heads serve with two. Throws InputError for devices that cannot.
void add_few_heads(OpenModel& model, const ModelWeights& few, const EngineOptions& options);

// Worker threads that are asked for: 0 means all cores. Throws InputError for fewer.
[[nodiscard]] int thread_count(int wanted);

// The same with `num_blocks` KV blocks and `num_threads` threads of the CPU, or the device's own where it has some.
[[nodiscard]] OpenModel open_model(ModelWeights weights, const EngineOptions& options, DraftWeights draft,
                                   OpenDevice device, int num_blocks, int num_threads, const Division& division = {});

}  // namespace dculab::engine
