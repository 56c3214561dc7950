#include "core/draft_counts.hpp"

#include <algorithm>

namespace dculab {
namespace {

DraftCounts::Place& at(std::vector<DraftCounts::Place>& places, std::size_t index) {
  if (places.size() <= index) places.resize(index + 1);
  return places[index];
}

void add_all(std::vector<DraftCounts::Place>& places, const std::vector<DraftCounts::Place>& others) {
  for (std::size_t index = 0; index < others.size(); ++index) {
    at(places, index).tested += others[index].tested;
    at(places, index).accepted += others[index].accepted;
  }
}

double share(const DraftCounts::Place& place) {
  return place.tested > 0 ? static_cast<double>(place.accepted) / static_cast<double>(place.tested) : 0;
}

}  // namespace

void DraftCounts::add(const DraftTree& draft, const Verdict& verdict) {
  if (draft.empty()) return;
  ++num_drafts;
  num_draft_tokens += draft.num_tokens();
  num_accepted_tokens += static_cast<std::int64_t>(verdict.path.size());
  int parent = DraftNode::kRoot;
  for (std::size_t level = 0; level <= verdict.path.size(); ++level) {
    const std::vector<int> guesses = draft.children(parent);
    if (guesses.empty()) return;
    ++at(by_depth, level).tested;
    const bool accepted = level < verdict.path.size();
    for (std::size_t rank = 0; rank < guesses.size(); ++rank) {
      ++at(by_rank, rank).tested;
      if (!accepted || guesses[rank] != verdict.path[level]) continue;
      ++at(by_rank, rank).accepted;
      break;
    }
    if (!accepted) return;
    ++at(by_depth, level).accepted;
    parent = verdict.path[level];
  }
}

DraftCounts& DraftCounts::operator+=(const DraftCounts& other) {
  add_all(by_depth, other.by_depth);
  add_all(by_rank, other.by_rank);
  num_drafts += other.num_drafts;
  num_draft_tokens += other.num_draft_tokens;
  num_accepted_tokens += other.num_accepted_tokens;
  return *this;
}

double DraftCounts::mean_acceptance_length() const {
  if (num_drafts == 0) return 0;
  return 1 + static_cast<double>(num_accepted_tokens) / static_cast<double>(num_drafts);
}

double DraftCounts::acceptance_rate(int depth) const {
  const auto index = static_cast<std::size_t>(depth - 1);
  return index < by_depth.size() ? share(by_depth[index]) : 0;
}

}  // namespace dculab
