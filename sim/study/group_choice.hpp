// How many KV heads to keep, by speed, memory and accuracy at once.
//
// Rule: of the choices that lose no more accuracy than is tolerated, the fastest; and of those within a tie of it, the
// one with the most KV heads. On the Pareto front stands what no other choice beats in one respect and equals or beats
// in the others.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/units.hpp"

namespace dculab::sim {

struct GroupOption {
  int kv_heads = 0;
  double tokens_per_second = 0;  // 0: does not fit
  Bytes kv_bytes_per_token;
  std::optional<double> accuracy_loss;  // relative to no merging; nothing: not measured
};

// [options.size()]. An option whose accuracy was not measured is not on the front.
[[nodiscard]] std::vector<bool> pareto_front(std::span<const GroupOption> options);

struct GroupVerdict {
  std::size_t best = 0;
  std::optional<std::size_t> runner_up;  // the fastest other choice that is tolerated
  std::optional<std::size_t> refused;    // the fastest choice that loses too much, if faster than the best
};

// Nothing when no option fits and is tolerated.
[[nodiscard]] std::optional<GroupVerdict> choose_group(std::span<const GroupOption> options, double tolerance,
                                                       double speed_tie);

}  // namespace dculab::sim
