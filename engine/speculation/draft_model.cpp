#include "engine/speculation/draft_model.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "model/plan_step.hpp"

namespace dculab::engine {
namespace {

constexpr int kAbsent = -2;  // a node that was not drafted, for want of likely tokens
constexpr int kRoot = DraftNode::kRoot;

// What a node of the tree sees of the tree, with the token before it as bit 0.
std::uint64_t mask_of(const DraftTree& tree, int node) {
  std::uint64_t mask = 1;
  for (; node != kRoot; node = tree.nodes[static_cast<std::size_t>(node)].parent)
    mask |= std::uint64_t{1} << (node + 1);
  return mask;
}

int num_blocks_for(int num_tokens, int block_size) { return (num_tokens + block_size - 1) / block_size; }

}  // namespace

EngineOptions draft_options(EngineOptions options, const ModelShape& draft) {
  options.weights = draft.layer_format();
  options.activations = ActivationMode::exact;
  options.max_num_batched_tokens = std::min(kLongestContext, options.max_num_batched_tokens + options.max_num_seqs);
  options.speculative_config.method = SpeculativeMethod::none;  // its steps have the shape's levels, though
  return options;
}

DraftModel::DraftModel(std::unique_ptr<ModelExecutor> executor, EngineOptions options, DraftShape shape)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      shape_(std::move(shape)),
      depths_(shape_.depths()),
      children_(shape_.nodes.size() + 1),
      planner_(planner_of(executor_->shape(), options_)) {
  executor_->set_op_timing(OpTiming::off);
  for (int node = 0; node < shape_.num_tokens(); ++node)
    children_[static_cast<std::size_t>(shape_.nodes[static_cast<std::size_t>(node)].parent + 1)].push_back(node);
}

void DraftModel::swap_blocks(std::span<const BlockCopy> out, std::span<const BlockCopy> in) {
  executor_->swap_blocks(out, in);
}

void DraftModel::forget(SequenceId id) {
  executor_->forget(id);
  progress_.erase(id);
}

Drafter::Proposal DraftModel::propose(const Batch& batch, std::span<const ScheduledSequence> sequences) {
  const auto begin = std::chrono::steady_clock::now();
  Proposal proposal;
  mirror(batch, sequences, proposal);
  while (!growing_.empty()) grow();
  proposal.duration = Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return proposal;
}

void DraftModel::judged(std::span<const JudgedSequence> sequences) {
  for (const JudgedSequence& judged : sequences) {
    const auto found = progress_.find(judged.sequence->request.id);
    if (found == progress_.end() || judged.draft->empty()) continue;
    Progress& progress = found->second;
    // Nodes stand behind their parents: those of a path that were computed come first.
    progress.num_computed_tokens += static_cast<int>(
        std::ranges::count_if(judged.verdict->path, [&](int node) { return node < progress.num_computed_nodes; }));
    progress.num_computed_nodes = 0;
  }
}

// The model's own step, with what this model has not computed before it.
void DraftModel::mirror(const Batch& batch, std::span<const ScheduledSequence> sequences, Proposal& proposal) {
  begin_batch();
  growing_.clear();
  proposal.trees.resize(sequences.size());
  for (std::size_t index = 0; index < sequences.size(); ++index)
    mirror(batch.sequences[index], sequences[index], proposal.trees[index]);
  plan_.batch.filters_logits = batch.filters_logits;
  run();
  std::erase_if(growing_, [this](Growth& growth) { return !add_level(growth); });
}

void DraftModel::mirror(const SequenceSlice& slice, const ScheduledSequence& scheduled, DraftTree& tree) {
  const int context = std::min(slice.context_tokens(), executor_->shape().max_position_embeddings);
  Progress& progress = progress_[slice.id];
  const bool is_late = slice.phase == Phase::decode && progress.num_computed_tokens == slice.num_computed_tokens - 1;
  const int computed = slice.num_computed_tokens - (is_late ? 1 : 0);
  progress = {.num_computed_tokens = std::max(context, computed)};
  if (computed >= context) return;
  const int num_new = context - computed;
  const bool grows = scheduled.max_draft_tokens > 0 && context == slice.context_tokens();
  if (grows) start_growth(scheduled, context, tree);
  add_to_batch(scheduled,
               {.id = slice.id,
                .phase = slice.phase,
                .num_computed_tokens = computed,
                .num_new_tokens = num_new,
                .num_logits = grows ? 1 : 0,
                .num_unwritten_tokens = is_late ? 0 : std::min(slice.num_unwritten_tokens, num_new),
                .num_draft_tokens = is_late ? 1 : 0},
               std::span(scheduled.sequence->tokens)
                   .subspan(static_cast<std::size_t>(computed), static_cast<std::size_t>(num_new)));
}

// Nodes of the shape, from the first on, that the scheduler has room for.
int DraftModel::allowed_nodes(const ScheduledSequence& scheduled) const {
  const auto deeper = std::ranges::upper_bound(depths_, scheduled.max_draft_depth);
  return std::min(scheduled.max_draft_tokens, static_cast<int>(deeper - depths_.begin()));
}

void DraftModel::start_growth(const ScheduledSequence& scheduled, int first, DraftTree& tree) {
  const int allowed = allowed_nodes(scheduled);
  if (allowed == 0) return;
  growing_.push_back({.scheduled = &scheduled,
                      .first = first,
                      .nodes = std::vector<int>(static_cast<std::size_t>(allowed), kAbsent),
                      .tree = &tree,
                      .first_row = num_rows_,
                      .first_node = kRoot});
}

// Computes the last level of each draft and adds the next.
void DraftModel::grow() {
  begin_batch();
  for (Growth& growth : growing_) grow(growth);
  run();
  std::erase_if(growing_, [this](Growth& growth) { return !add_level(growth); });
}

void DraftModel::grow(Growth& growth) {
  const DraftTree& tree = *growth.tree;
  // From the first to the last node of the level that may have children: what lies between gives logits for nothing.
  int first = tree.num_tokens(), last = kRoot;
  for (std::size_t node = 0; node < growth.nodes.size(); ++node) {
    const int place = growth.nodes[node];
    const std::vector<int>& children = children_[node + 1];
    if (place < growth.level_begin || children.empty() || children.front() >= std::ssize(growth.nodes)) continue;
    first = std::min(first, place);
    last = std::max(last, place);
  }
  growth.first_node = first;
  growth.first_row = num_rows_;
  progress_[growth.scheduled->sequence->request.id].num_computed_nodes = last + 1;
  std::vector<TokenId> tokens;
  for (int node = growth.level_begin; node <= last; ++node)
    tokens.push_back(tree.nodes[static_cast<std::size_t>(node)].token);
  const int num_new = static_cast<int>(tokens.size());
  const bool is_chain = shape_.is_chain();
  if (!is_chain)
    for (int node = growth.level_begin; node <= last; ++node) plan_.batch.tree_masks.push_back(mask_of(tree, node));
  add_to_batch(*growth.scheduled,
               {.id = growth.scheduled->sequence->request.id,
                .phase = Phase::decode,
                .num_computed_tokens = growth.first + growth.level_begin,
                .num_new_tokens = num_new,
                .num_logits = last - first + 1,
                .num_draft_tokens = num_new,
                .num_tree_tokens = is_chain ? 0 : 1 + last + 1},
               tokens);
}

// Whether there are nodes of the new level that may have children.
bool DraftModel::add_level(Growth& growth) {
  DraftTree& tree = *growth.tree;
  const auto allowed = static_cast<int>(growth.nodes.size());
  const Sequence& sequence = *growth.scheduled->sequence;
  const int parents_begin = growth.first_node == kRoot ? kRoot : growth.level_begin;
  growth.level_begin = tree.num_tokens();
  bool goes_on = false;
  for (int node = kRoot; node < allowed; ++node) {
    const int parent = node == kRoot ? kRoot : growth.nodes[static_cast<std::size_t>(node)];
    std::span<const int> children = children_[static_cast<std::size_t>(node + 1)];
    children = children.first(static_cast<std::size_t>(std::ranges::lower_bound(children, allowed) - children.begin()));
    if (parent < parents_begin || parent >= growth.level_begin || children.empty()) continue;
    if (node == kRoot && parents_begin != kRoot) continue;
    std::vector<int> ranks;
    for (const int child : children) ranks.push_back(shape_.nodes[static_cast<std::size_t>(child)].rank);
    const int before = tree.num_tokens();
    const int depth = node == kRoot ? 0 : depths_[static_cast<std::size_t>(node)];
    const int added =
        guesses_.add(tree, parent, ranks, executor_->logits(growth.first_row + parent - growth.first_node),
                     sequence.request.sampling, static_cast<std::uint64_t>(sequence.num_tokens() + depth));
    for (int index = 0; index < added; ++index) {
      const int child = children[static_cast<std::size_t>(index)];
      growth.nodes[static_cast<std::size_t>(child)] = before + index;
      const std::vector<int>& next = children_[static_cast<std::size_t>(child + 1)];
      goes_on |= !next.empty() && next.front() < allowed;
    }
  }
  return goes_on;
}

void DraftModel::begin_batch() {
  plan_.batch = {};
  num_rows_ = 0;
}

void DraftModel::add_to_batch(const ScheduledSequence& scheduled, const SequenceSlice& slice,
                              std::span<const TokenId> tokens) {
  Batch& batch = plan_.batch;
  batch.sequences.push_back(slice);
  batch.token_ids.insert(batch.token_ids.end(), tokens.begin(), tokens.end());
  const auto blocks = scheduled.sequence->block_table.blocks().first(
      static_cast<std::size_t>(num_blocks_for(slice.context_tokens(), options_.block_size)));
  batch.block_tables.emplace_back(blocks.begin(), blocks.end());
  num_rows_ += slice.num_logits;
}

void DraftModel::run() {
  if (plan_.batch.sequences.empty()) return;
  planner_(plan_);
  static_cast<void>(executor_->run(plan_));
}

}  // namespace dculab::engine
