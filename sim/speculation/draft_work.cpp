#include "sim/speculation/draft_work.hpp"

#include <algorithm>
#include <utility>

#include "model/draft_heads.hpp"
#include "model/kv/kv_bytes.hpp"
#include "model/plan_step.hpp"
#include "sim/cost/energy.hpp"
#include "sim/cost/step_price.hpp"

namespace dculab::sim {
namespace {

[[nodiscard]] EngineOptions options_of_draft(const EngineOptions& options, const Speculation& speculation) {
  EngineOptions draft = options;
  draft.speculative_config = {};
  if (speculation.draft) {
    draft.weights = speculation.draft_weights;
    draft.activations = ActivationMode::exact;
  }
  return draft;
}

// Whole.
[[nodiscard]] ModelShape shape_of_draft(const ModelShape& model, SpeculativeMethod method,
                                        const Speculation& speculation) {
  if (method == SpeculativeMethod::draft_model) return *speculation.draft;
  return method == SpeculativeMethod::mtp ? mtp_shape(model) : model;
}

// A sequence of a round, as far as it has come.
struct Round {
  DraftTree draft{};
  std::vector<int> depths{};  // of the draft's nodes
  SequenceSlice slice{};
};

// Nodes of the draft at that depth that others follow: what is computed to guess what is one deeper.
[[nodiscard]] int parents_at(const Round& round, int depth) {
  int parents = 0;
  for (int node = 0; node < round.draft.num_tokens(); ++node)
    if (round.depths[static_cast<std::size_t>(node)] == depth && !round.draft.children(node).empty()) ++parents;
  return parents;
}

// The next step of those that go on, at depth 1, 2, ...
[[nodiscard]] Batch next_level(std::vector<Round>& rounds, int depth) {
  Batch batch;
  for (Round& round : rounds) {
    const int nodes = parents_at(round, depth);
    if (nodes == 0) continue;
    SequenceSlice& slice = round.slice;
    slice.num_computed_tokens += slice.num_new_tokens;
    slice.num_new_tokens = slice.num_logits = nodes;
    if (!round.draft.is_chain()) slice.num_tree_tokens += nodes;
    batch.sequences.push_back(slice);
  }
  return batch;
}

void find_draft_problems(const ModelShape& draft, const ModelShape& model, WeightFormat weights,
                         const ReplicaDevices& devices, const Machine& machine, std::vector<std::string>& found) {
  for (const std::string& problem : problems(draft)) found.push_back("draft model " + draft.name + ": " + problem);
  if (draft.vocab_size != model.vocab_size)
    found.push_back("draft model " + draft.name + " has a vocabulary of " + std::to_string(draft.vocab_size) +
                    " tokens, and " + model.name + " one of " + std::to_string(model.vocab_size) +
                    ": it must be the same");
  for (const std::string& problem : sharing_problems(machine, draft, weights, devices.tensor_parallel_size))
    found.push_back("draft model " + draft.name + ": " + problem);
}

}  // namespace

std::vector<std::string> problems(const std::optional<Speculation>& speculation, const ModelShape& model,
                                  const EngineOptions& options, const Deployment& deployment, const Machine& machine) {
  const SpeculativeConfig& config = options.speculative_config;
  std::vector<std::string> found;
  if (!config.enabled()) return found;
  const ReplicaDevices devices = deployment.of(ReplicaRole::both);
  if (deployment.is_disaggregated())
    found.emplace_back("drafts are not simulated on prefill and decode replicas: which of them drafts is not known");
  if (devices.pipeline_parallel_size > 1)
    found.emplace_back("drafts are not simulated in a pipeline, whose first stage would wait for them");
  if (devices.shares_experts() && config.method == SpeculativeMethod::draft_model)
    found.emplace_back("a draft model is not simulated where devices share experts; method mtp is");
  if (config.method == SpeculativeMethod::mtp && model.num_nextn_predict_layers == 0)
    found.push_back("method mtp: " + model.name + " has no layers that predict further tokens " +
                    "(num_nextn_predict_layers); take a draft model");
  if (!speculation) {
    found.emplace_back("acceptance: missing");
    return found;
  }
  if (config.method == SpeculativeMethod::draft_model && !speculation->draft)
    found.emplace_back("model: missing; method draft_model needs the model that drafts");
  if (found.empty() && config.method == SpeculativeMethod::draft_model)
    find_draft_problems(*speculation->draft, model, speculation->draft_weights, devices, machine, found);
  for (std::string& problem : problems(speculation->acceptance, config.shape)) found.push_back(std::move(problem));
  return found;
}

DraftTree draft_of(const DraftShape& shape, int max_tokens, int max_depth) {
  DraftTree draft;
  if (max_tokens <= 0 || max_depth <= 0) return draft;
  draft.nodes.reserve(shape.nodes.size());
  for (const DraftShape::Node& node : shape.nodes) draft.nodes.push_back({.parent = node.parent, .rank = node.rank});
  draft.limit_depth(max_depth);
  draft.truncate(max_tokens);
  return draft;
}

Batch with_drafts(Batch batch, const DraftShape& shape) {
  const int tokens = shape.num_tokens();
  for (SequenceSlice& slice : batch.sequences) {
    if (slice.phase != Phase::decode) continue;
    slice.num_new_tokens += tokens;
    slice.num_logits += tokens;
    slice.num_draft_tokens = tokens;
    slice.num_tree_tokens = shape.is_chain() ? 0 : 1 + tokens;
  }
  return batch;
}

DraftWork::DraftWork(const Machine& machine, const ModelShape& model, const EngineOptions& options,
                     const ReplicaDevices& devices, const Speculation& speculation)
    : machine_(machine),
      options_(options),
      num_nextn_predict_layers_(model.num_nextn_predict_layers),
      draft_options_(options_of_draft(options, speculation)),
      part_(part_of_layers(devices, machine, shape_of_draft(model, options.speculative_config.method, speculation),
                           draft_options_)),
      model_weights_(weight_footprint(part_of_layers(devices, machine, model, options), options.weights)) {}

void DraftWork::plan_into(StepPlan& plan) const {
  if (method() == SpeculativeMethod::mtp) return plan_mtp_step_into(plan, part_, draft_options_);
  if (method() == SpeculativeMethod::medusa)
    return plan_medusa_heads_into(plan, part_, draft_options_, options_.speculative_config.num_speculative_tokens());
  plan_step_into(plan, part_, draft_options_);
}

std::vector<StepPlan> DraftWork::plan(std::span<const DraftTask> tasks) const {
  std::vector<StepPlan> steps;
  if (method() == SpeculativeMethod::ngram) return steps;
  std::vector<Round> rounds;
  Batch first;
  for (const DraftTask& task : tasks) {
    if (!has_cache() && task.max_tokens == 0) continue;
    if (has_cache() && task.missing.num_new_tokens == 0) continue;
    Round round{.draft = draft_of(options_.speculative_config.shape, task.max_tokens, task.max_depth),
                .slice = task.missing};
    round.depths = round.draft.depths();
    round.slice.num_logits = round.draft.empty() ? 0 : 1;
    first.sequences.push_back(round.slice);
    if (!round.draft.is_chain()) round.slice.num_tree_tokens = 1;
    if (!round.draft.empty()) rounds.push_back(std::move(round));
  }
  if (first.sequences.empty()) return steps;
  // Prompts come first, as in every step.
  std::stable_partition(first.sequences.begin(), first.sequences.end(),
                        [](const auto& slice) { return slice.phase == Phase::prefill; });
  steps.emplace_back().batch = std::move(first);
  for (int depth = 1; has_cache(); ++depth) {
    Batch level = next_level(rounds, depth);
    if (level.sequences.empty()) break;
    steps.emplace_back().batch = std::move(level);
  }
  for (StepPlan& step : steps) plan_into(step);
  return steps;
}

DraftPrice DraftWork::price(const Machine& machine, std::span<const StepPlan> steps,
                            std::span<const DraftTask> tasks) const {
  DraftPrice total;
  if (method() == SpeculativeMethod::ngram)
    for (const DraftTask& task : tasks)
      if (task.max_tokens > 0) total.seconds += static_cast<double>(task.missing.context_tokens()) * kLookUpPerToken;
  const Seconds each = machine.stack.host_per_step.value_or(machine.overheads.host_per_step);
  const Seconds sequence = machine.stack.host_per_sequence.value_or(machine.overheads.host_per_sequence);
  StepPrice price;
  Bytes beside = model_weights_;
  for (const StepPlan& step : steps) {
    price_step(machine, step, 0, price, beside);
    total.seconds += price.seconds - each - static_cast<double>(step.batch.sequences.size()) * sequence;
    if (machine.power.is_stated()) total.active += active_energy(machine, step, price);
    beside = {};
  }
  return total;
}

DraftMemory DraftWork::memory() const {
  const SpeculativeConfig& config = options_.speculative_config;
  switch (config.method) {
    case SpeculativeMethod::draft_model:
      return {.weights = weight_footprint(part_, draft_options_.weights),
              .activations = activation_footprint(part_, draft_options_),
              .kv_bytes_per_token = kv_bytes_per_token(part_, draft_options_.kv_cache_dtype)};
    case SpeculativeMethod::mtp: {
      const double layers = num_nextn_predict_layers_;
      return {.weights = mtp_footprint(part_, num_nextn_predict_layers_, draft_options_.weights),
              .activations = {},  // the model's serve
              .kv_bytes_per_token = layers * kv_bytes_per_token(part_, draft_options_.kv_cache_dtype)};
    }
    case SpeculativeMethod::medusa:
      return {.weights = medusa_footprint(part_, config.num_speculative_tokens()),
              .activations = {},
              .kv_bytes_per_token = {}};
    case SpeculativeMethod::ngram:
    case SpeculativeMethod::none:
      break;
  }
  return {};
}

std::vector<DraftTask> uniform_tasks(const DraftShape& shape, int batch, int context) {
  DraftTask task;
  task.missing.num_computed_tokens = context - 1;
  task.max_tokens = shape.num_tokens();
  task.max_depth = shape.depth();
  std::vector<DraftTask> tasks(static_cast<std::size_t>(batch), task);
  for (std::size_t index = 0; index < tasks.size(); ++index) tasks[index].missing.id = static_cast<SequenceId>(index);
  return tasks;
}

}  // namespace dculab::sim
