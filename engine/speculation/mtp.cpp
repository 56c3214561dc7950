#include "engine/speculation/mtp.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "core/error.hpp"
#include "model/plan_step.hpp"

namespace dculab::engine {
namespace {

using MtpClock = std::chrono::steady_clock;

Seconds since(MtpClock::time_point start) {
  return Seconds(std::chrono::duration<double>(MtpClock::now() - start).count());
}

// The layer keeps every token, and drafts nothing for itself.
EngineOptions layer_options(EngineOptions options, const ModelShape& layer) {
  options.weights = layer.layer_format();
  options.speculative_config = {};
  return options;
}

}  // namespace

MtpDrafter::MtpDrafter(ModelExecutor& model, std::unique_ptr<MtpLayer> layer, const EngineOptions& options)
    : model_(model),
      layer_(std::move(layer)),
      options_(layer_options(options, layer_->shape())),
      planner_(planner_of(layer_->shape(), options_)) {
  if (!options.speculative_config.shape.is_chain())
    throw InputError("mtp drafts a chain: leave speculative_token_tree out");
  model_.keep_all_hidden();
}

void MtpDrafter::forget(SequenceId id) {
  known_.erase(id);
  layer_->executor().forget(id);
}

void MtpDrafter::begin_batch() {
  plan_.batch = {};
  hidden_.clear();
}

void MtpDrafter::add_to_batch(const Sequence& sequence, const SequenceSlice& slice, std::span<const TokenId> tokens,
                              std::span<const float> hidden) {
  Batch& batch = plan_.batch;
  batch.sequences.push_back(slice);
  batch.token_ids.insert(batch.token_ids.end(), tokens.begin(), tokens.end());
  hidden_.insert(hidden_.end(), hidden.begin(), hidden.end());
  std::vector<BlockId> blocks(sequence.block_table.blocks().begin(), sequence.block_table.blocks().end());
  blocks.resize(static_cast<std::size_t>((slice.context_tokens() + options_.block_size - 1) / options_.block_size));
  batch.block_tables.push_back(std::move(blocks));
}

void MtpDrafter::run() {
  planner_(plan_);
  layer_->run(plan_, hidden_);
}

Drafter::Proposal MtpDrafter::propose(const Batch& batch, std::span<const ScheduledSequence> sequences) {
  const auto begin = MtpClock::now();
  Proposal proposal;
  proposal.trees.resize(sequences.size());
  members_.clear();
  growing_.clear();
  for (std::size_t index = 0; index < sequences.size(); ++index) {
    members_.push_back({sequences[index], batch.sequences[index]});
    start(sequences[index], proposal.trees[index]);
  }
  for (Growth& growth : growing_) guess(growth);
  while (grow()) {
  }
  proposal.duration = std::exchange(following_, Seconds()) + since(begin);
  return proposal;
}

void MtpDrafter::start(const ScheduledSequence& scheduled, DraftTree& tree) {
  const int depth =
      std::min({scheduled.max_draft_tokens, scheduled.max_draft_depth, layer_->shape().max_position_embeddings});
  const auto known = known_.find(scheduled.sequence->request.id);
  if (depth <= 0 || known == known_.end() || known->second.num_tokens != scheduled.sequence->num_tokens()) return;
  growing_.push_back({.scheduled = &scheduled,
                      .tree = &tree,
                      .depth = depth,
                      .logits = known->second.logits,
                      .hidden = known->second.hidden});
}

// The next token, from the logits behind the one before.
void MtpDrafter::guess(Growth& growth) {
  constexpr std::array kLikeliest{0};
  const Sequence& sequence = *growth.scheduled->sequence;
  const int drafted = growth.tree->num_tokens();
  guesses_.add(*growth.tree, drafted - 1, kLikeliest, growth.logits, sequence.request.sampling,
               static_cast<std::uint64_t>(sequence.num_tokens() + drafted));
}

// One pass for the drafts that are to be longer; false when there is none. The guessed token at i + 1 stands at
// position i, behind the hidden state that guessed it.
bool MtpDrafter::grow() {
  std::erase_if(growing_, [](const Growth& growth) { return growth.tree->num_tokens() >= growth.depth; });
  if (growing_.empty()) return false;
  begin_batch();
  for (const Growth& growth : growing_) {
    const Sequence& sequence = *growth.scheduled->sequence;
    const SequenceSlice slice{.id = sequence.request.id,
                              .phase = Phase::decode,
                              .num_computed_tokens = sequence.num_tokens() - 2 + growth.tree->num_tokens(),
                              .num_new_tokens = 1};
    add_to_batch(sequence, slice, std::array{growth.tree->nodes.back().token}, growth.hidden);
  }
  run();
  for (std::size_t row = 0; row < growing_.size(); ++row) {
    const auto logits = layer_->logits(static_cast<int>(row)), hidden = layer_->hidden(static_cast<int>(row));
    growing_[row].logits.assign(logits.begin(), logits.end());
    growing_[row].hidden.assign(hidden.begin(), hidden.end());
    guess(growing_[row]);
  }
  return true;
}

// Adds the tokens of a sequence that the step has computed for good, `first_token` of the step's on, one ahead. Returns
// how many the step had.
int MtpDrafter::follow(const Member& member, const JudgedSequence* judged, int first_token) {
  const Sequence& sequence = *member.scheduled.sequence;
  const int computed = member.slice.num_computed_tokens, num_new = member.slice.num_new_tokens;
  const int accepted = judged == nullptr ? 0 : static_cast<int>(judged->verdict->path.size());
  const int drafted = judged == nullptr ? 0 : judged->draft->num_tokens();
  if (sequence.finish_reason != FinishReason::none) return num_new + drafted;
  SequenceSlice slice{.id = member.slice.id,
                      .phase = Phase::prefill,
                      .num_computed_tokens = computed,
                      .num_new_tokens = num_new + accepted,
                      .num_logits = judged == nullptr ? 0 : 1};
  slice.num_unwritten_tokens = member.slice.num_unwritten_tokens;
  const auto columns = static_cast<std::size_t>(model_.shape().hidden_size);
  const auto count = static_cast<std::size_t>(slice.num_new_tokens);
  add_to_batch(sequence, slice, std::span(sequence.tokens).subspan(static_cast<std::size_t>(computed) + 1, count),
               model_.all_hidden().subspan(static_cast<std::size_t>(first_token) * columns, count * columns));
  return num_new + drafted;
}

void MtpDrafter::judged(std::span<const JudgedSequence> sequences) {
  const auto begin = MtpClock::now();
  begin_batch();
  std::vector<const Sequence*> asked;  // whose logits come
  std::vector<int> last_tokens;        // of the batch
  auto next = sequences.begin();
  int first_token = 0;
  for (const Member& member : members_) {
    const bool is_sampled = next != sequences.end() && next->sequence == member.scheduled.sequence;
    first_token += follow(member, is_sampled ? &*next : nullptr, first_token);
    if (is_sampled && next->sequence->finish_reason == FinishReason::none) {
      asked.push_back(next->sequence);
      last_tokens.push_back(static_cast<int>(plan_.batch.token_ids.size()) - 1);
    }
    if (is_sampled) ++next;
  }
  if (!plan_.batch.sequences.empty()) run();
  for (std::size_t row = 0; row < asked.size(); ++row) {
    const auto logits = layer_->logits(static_cast<int>(row)), hidden = layer_->hidden(last_tokens[row]);
    known_[asked[row]->request.id] = {.num_tokens = asked[row]->num_tokens(),
                                      .logits = {logits.begin(), logits.end()},
                                      .hidden = {hidden.begin(), hidden.end()}};
  }
  following_ += since(begin);
}

}  // namespace dculab::engine
