#include "engine/speculation/medusa.hpp"

#include <chrono>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace dculab::engine {
namespace {

void require_guesses(int asked, int most) {
  if (asked > most)
    throw InputError("the Medusa tree has " + std::to_string(asked) +
                     " guesses for a place, but a head gives at most " + std::to_string(most));
}

}  // namespace

DraftShape medusa_shape(const MedusaWeights& weights, const DraftShape& asked) {
  DraftShape shape = asked.nodes.empty() ? weights.shape : asked;
  if (shape.depth() > weights.num_heads())
    throw InputError("the draft is " + std::to_string(shape.depth()) + " tokens deep, but there are " +
                     std::to_string(weights.num_heads()) + " Medusa heads, one for each");
  require_guesses(shape.width(), weights.num_rows());
  return shape;
}

MedusaDrafter::MedusaDrafter(ModelExecutor& model, const MedusaWeights& weights, DraftShape shape)
    : model_(model), heads_(model.make_draft_heads(weights)), shape_(std::move(shape)), depths_(shape_.depths()) {
  require_guesses(shape_.width(), heads_->most_guesses());
}

const MedusaDrafter::Known* MedusaDrafter::known(const ScheduledSequence& scheduled) const {
  if (scheduled.max_draft_tokens == 0) return nullptr;
  const auto found = known_.find(scheduled.sequence->request.id);
  const bool is_last = found != known_.end() && found->second.num_tokens == scheduled.sequence->num_tokens();
  return is_last ? &found->second : nullptr;
}

Drafter::Proposal MedusaDrafter::propose(const Batch&, std::span<const ScheduledSequence> sequences) {
  const auto start = std::chrono::steady_clock::now();
  Proposal proposal;
  proposal.trees.resize(sequences.size());
  hidden_.clear();
  std::vector<std::size_t> drafted;
  for (std::size_t index = 0; index < sequences.size(); ++index)
    if (const Known* const found = known(sequences[index])) {
      hidden_.insert(hidden_.end(), found->hidden.begin(), found->hidden.end());
      drafted.push_back(index);
    }
  if (!drafted.empty()) {
    const std::span<const TokenId> guesses = heads_->guess(hidden_, shape_.width());
    const std::size_t of_sequence = guesses.size() / drafted.size();
    for (std::size_t row = 0; row < drafted.size(); ++row) {
      DraftTree& drafted_tree = proposal.trees[drafted[row]] = tree(guesses.subspan(row * of_sequence, of_sequence));
      drafted_tree.limit_depth(sequences[drafted[row]].max_draft_depth);
      drafted_tree.truncate(sequences[drafted[row]].max_draft_tokens);
    }
  }
  proposal.duration = Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return proposal;
}

// guesses: [num_heads, width]
DraftTree MedusaDrafter::tree(std::span<const TokenId> guesses) const {
  DraftTree tree;
  for (std::size_t node = 0; node < shape_.nodes.size(); ++node) {
    const auto [parent, rank] = shape_.nodes[node];
    const auto guess = static_cast<std::size_t>((depths_[node] - 1) * shape_.width() + rank);
    tree.nodes.push_back({.token = guesses[guess], .parent = parent, .rank = rank});
  }
  return tree;
}

void MedusaDrafter::judged(std::span<const JudgedSequence> sequences) {
  std::vector<int> rows;
  for (const JudgedSequence& judged : sequences) {
    const std::vector<int>& path = judged.verdict->path;
    rows.push_back(judged.first_row + (path.empty() ? 0 : path.back() + 1));
  }
  const auto columns = static_cast<std::size_t>(model_.shape().hidden_size);
  hidden_.resize(rows.size() * columns);
  model_.copy_last_hidden(rows, hidden_);
  for (std::size_t row = 0; row < sequences.size(); ++row) {
    Known& known = known_[sequences[row].sequence->request.id];
    const std::span hidden = std::span(hidden_).subspan(row * columns, columns);
    known.num_tokens = sequences[row].sequence->num_tokens();
    known.hidden.assign(hidden.begin(), hidden.end());
  }
}

}  // namespace dculab::engine
