#include "sim/study/group_choice.hpp"

namespace dculab::sim {
namespace {

[[nodiscard]] bool fits(const GroupOption& option) { return option.tokens_per_second > 0; }

[[nodiscard]] bool beats(const GroupOption& a, const GroupOption& b) {
  const bool no_worse = a.tokens_per_second >= b.tokens_per_second && a.kv_bytes_per_token <= b.kv_bytes_per_token &&
                        *a.accuracy_loss <= *b.accuracy_loss;
  const bool better = a.tokens_per_second > b.tokens_per_second || a.kv_bytes_per_token < b.kv_bytes_per_token ||
                      *a.accuracy_loss < *b.accuracy_loss;
  return no_worse && better;
}

// The fastest option for which `allowed` holds.
template <class Allowed>
[[nodiscard]] std::optional<std::size_t> fastest(std::span<const GroupOption> options, Allowed allowed) {
  std::optional<std::size_t> found;
  for (std::size_t index = 0; index < options.size(); ++index) {
    if (!fits(options[index]) || !allowed(index)) continue;
    if (!found || options[index].tokens_per_second > options[*found].tokens_per_second) found = index;
  }
  return found;
}

}  // namespace

std::vector<bool> pareto_front(std::span<const GroupOption> options) {
  std::vector<bool> front;
  for (const GroupOption& option : options) {
    bool stays = fits(option) && option.accuracy_loss.has_value();
    for (const GroupOption& other : options)
      if (stays && fits(other) && other.accuracy_loss && beats(other, option)) stays = false;
    front.push_back(stays);
  }
  return front;
}

std::optional<GroupVerdict> choose_group(std::span<const GroupOption> options, double tolerance, double speed_tie) {
  const auto tolerated = [&](std::size_t index) {
    return options[index].accuracy_loss && *options[index].accuracy_loss <= tolerance;
  };
  const auto quickest = fastest(options, tolerated);
  if (!quickest) return std::nullopt;
  GroupVerdict verdict{*quickest, {}, {}};
  for (std::size_t index = 0; index < options.size(); ++index) {
    const bool ties = options[index].tokens_per_second >= options[*quickest].tokens_per_second / (1 + speed_tie);
    if (tolerated(index) && ties && options[index].kv_heads > options[verdict.best].kv_heads) verdict.best = index;
  }
  verdict.runner_up = fastest(options, [&](std::size_t index) { return tolerated(index) && index != verdict.best; });
  verdict.refused = fastest(options, [&](std::size_t index) {
    return options[index].accuracy_loss && !tolerated(index) &&
           options[index].tokens_per_second > options[verdict.best].tokens_per_second;
  });
  return verdict;
}

}  // namespace dculab::sim
