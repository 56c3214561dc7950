#include "engine/generate/open_model.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>

#include "core/activation_mode.hpp"
#include "core/block_pool.hpp"
#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/parallel/ranked_executor.hpp"
#include "engine/regroup/mean_pool.hpp"
#include "model/few_heads.hpp"
#include "model/kv/kv_bytes.hpp"
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
                      Bytes free_memory, Bytes draft_block) {
  const Bytes block = kv_block_bytes(model, options) + draft_block;
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

ModelWeights load_few_heads(const ModelWeights& many, int num_key_value_heads, const std::filesystem::path& folder,
                            const EngineOptions& options) {
  ModelWeights few = folder.empty() ? regrouped(many, num_key_value_heads) : load_weights(folder);
  if (const auto found = few_heads_problems(many.shape, few.shape, options); !found.empty())
    throw InputError("engine.groups_by_load", found.front());
  return few;
}

void add_few_heads(OpenModel& model, const ModelWeights& few, const EngineOptions& options) {
  const int block_size = options_of_few(options, model.executor->shape(), few.shape).block_size;
  model.few_heads = model.executor->with_few_heads(few, block_size);
}

SchedulerLimits OpenModel::scheduler_limits() const {
  return {.num_blocks = executor->kv_cache().num_blocks,
          .max_position_embeddings = executor->shape().max_position_embeddings,
          .num_host_blocks = executor->kv_cache().num_host_blocks,
          .draft_context = drafts.context,
          .few_tokens_per_slot = few_heads ? few_heads->kv_cache().block_size / executor->kv_cache().block_size : 1};
}

DraftWeights load_draft(const GeneratorOptions& asked, const EngineOptions& options, const ModelWeights& target) {
  const SpeculativeMethod method = options.speculative_config.method;
  DraftWeights draft;
  if (method == SpeculativeMethod::draft_model) {
    if (!asked.draft_weights && asked.speculative_model.empty()) return draft;
    draft.model =
        asked.draft_weights ? *asked.draft_weights : load_weights(asked.speculative_model, asked.weight_memory);
    require_draft_of(target.shape, draft.model->shape, options);
  }
  if (asked.speculative_model.empty()) return draft;
  if (method == SpeculativeMethod::medusa) draft.medusa = load_medusa_weights(asked.speculative_model, target);
  if (method == SpeculativeMethod::mtp)
    draft.mtp = load_mtp_weights(asked.speculative_model, asked.weight_memory, target);
  return draft;
}

OpenModel open_model(ModelWeights weights, const EngineOptions& options, const GeneratorOptions& asked) {
  const Division& division = asked.division;
  require_shared_device(asked.device, division);
  require_divisible(weights.shape, options.weights, division);
  OpenDevice device = open_device(asked.device);
  DraftWeights draft = load_draft(asked, options, weights);
  // Each rank has its part of every block, and the same number of blocks.
  const ModelShape part = part_of(weights.shape, options.weights, division);
  const double share = 1.0 / division.tensor_parallel_size;
  const Bytes taken =
      memory_besides_kv(device, part, options) + draft_memory_besides_kv(device, weights.shape, draft, options);
  const Bytes free = std::max(Bytes(), share * device.free_memory() - taken);
  std::optional<Bytes> memory = asked.kv_cache_memory;
  if (memory) *memory *= share;
  const int num_blocks = choose_num_blocks(part, options, memory, free, draft_block_bytes(draft, options));
  return open_model(std::move(weights), options, std::move(draft), std::move(device), num_blocks,
                    thread_count(asked.num_threads), division);
}

OpenModel open_model(ModelWeights weights, const EngineOptions& options, DraftWeights draft, OpenDevice device,
                     int num_blocks, int num_threads, const Division& division) {
  const Bytes part = kv_block_bytes(part_of(weights.shape, options.weights, division), options);
  const Bytes block = division.tensor_parallel_size * part + draft_block_bytes(draft, options);
  const KvCacheOptions kv{.num_blocks = num_blocks,
                          .block_size = options.block_size,
                          .dtype = options.kv_cache_dtype,
                          .max_num_seqs = options.max_num_seqs,
                          .residual_tokens = options.kv_residual_tokens,
                          .num_host_blocks = num_host_blocks(options, block),
                          .policy = options.kv_retention.policy};
  const bool has_model = draft.model || draft.mtp;
  if (has_model && !division.is_divided() && device.threads == nullptr) share_threads(device, num_threads);
  OpenModel model{.executor = make_divided_executor(device, std::move(weights), kv, options, num_threads, division)};
  // Of several processes the first drafts. It has its threads once the others are there.
  if (has_model && division.is_divided()) share_threads(device, threads_of_rank(num_threads, division));
  model.drafts = make_draft_source(device, options, *model.executor, std::move(draft));
  return model;
}

}  // namespace dculab::engine
