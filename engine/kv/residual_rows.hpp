// Which residual of a kivi4 or kivi2 cache belongs to which running sequence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/batch.hpp"

namespace dculab::engine {

class ResidualRows {
 public:
  explicit ResidualRows(int max_num_seqs) : rows_(static_cast<std::size_t>(max_num_seqs)) {}

  // The row of each sequence of a step. Whoever is not in the step has ended or was preempted, its row is free again;
  // so a sequence must take part in every step until then, and all its tokens must have passed through here. Throws
  // InputError for one that goes on from tokens of others (a fork, a cached prefix) or has lost some.
  [[nodiscard]] std::span<const std::int32_t> assign(const Batch& batch);

  // From now on a sequence may begin anywhere: the residuals hold random values.
  void allow_any_start() { any_start_ = true; }

 private:
  struct Row {
    bool is_taken = false;
    SequenceId sequence = 0;
    int computed = 0;  // tokens of the sequence so far
  };
  [[nodiscard]] std::int32_t find(const SequenceSlice& slice) const;
  [[nodiscard]] std::int32_t take_free_row();

  std::vector<Row> rows_;             // [max_num_seqs]
  std::vector<std::int32_t> result_;  // [sequences of the step]
  bool any_start_ = false;
};

}  // namespace dculab::engine
