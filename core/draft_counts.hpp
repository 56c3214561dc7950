// How many drafted tokens were accepted, by their depth in the draft and by their rank among the guesses for a place.
#pragma once

#include <cstdint>
#include <vector>

#include "core/drafter.hpp"

namespace dculab {

struct DraftCounts {
  struct Place {
    std::int64_t tested = 0, accepted = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  // A place is tested when all places before it were accepted and the draft had a guess for it.
  std::vector<Place> by_depth{};  // [deepest draft]
  // A guess is tested when those of lower rank for the same place were rejected.
  std::vector<Place> by_rank{};       // [most guesses for a place]
  std::int64_t num_drafts = 0;        // steps of sequences that had a draft
  std::int64_t num_draft_tokens = 0;  // nodes of them
  std::int64_t num_accepted_tokens = 0;

  void add(const DraftTree& draft, const Verdict& verdict);
  DraftCounts& operator+=(const DraftCounts& other);

  // Tokens that a step with a draft yields, the model's own among them; 0 without drafts. vLLM's mean acceptance
  // length.
  [[nodiscard]] double mean_acceptance_length() const;
  // Share of the places at `depth` (1, 2, ...) whose guess was accepted when all before were.
  [[nodiscard]] double acceptance_rate(int depth) const;

  friend bool operator==(const DraftCounts&, const DraftCounts&) = default;
};

}  // namespace dculab
