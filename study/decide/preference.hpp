// The one rule by which a value is chosen: a block size, a number of KV heads, a format, a limit; by the price of a
// step, by a steady state or by served requests.
//
//   cost   = figure of the best / figure of a choice - 1, with the 90 % interval of that very ratio: what moves both
//            alike is in neither end
//   tied   = the cost is within what the figure resolves, or the interval reaches 0: other figures of the machine, or
//            other requests, rank the two the other way
//   chosen = the first whose cost is within what the figure resolves, or no more than is given up for what stands
//   before
//            it. A cost that is only vague is no reason to take what is slower
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dculab::study {

inline constexpr double kPriceResolution = 0.01;   // of priced steps: less is no reason to change a server
inline constexpr double kServedResolution = 0.02;  // of served requests: a little later, and other batches form
inline constexpr double kAccuracyTie = 0.05;       // speed given up for accuracy: decision 0007

// A choice, and what it comes to.
struct Evaluated {
  std::string value;             // "16"
  double figure = 0;             // more is better; 0: cannot be had
  std::vector<double> shifts{};  // of log(figure): by what it is uncertain, one standard deviation each
};

// What stands first is preferred.
struct Preference {
  double resolution = kPriceResolution;
  double given_up = 0;
};

struct Cost {
  double value = 0, low = 0, high = 0;
  bool tied = false;
};

struct Verdict {
  std::size_t best = 0;                    // has the largest figure
  std::size_t chosen = 0;                  // the answer
  std::optional<std::size_t> runner_up;    // the largest other figure than the chosen one's
  std::vector<std::optional<Cost>> costs;  // of each choice against the best; nothing: cannot be had

  // That cannot be told apart from the best.
  [[nodiscard]] bool is_tied(std::size_t choice) const { return costs[choice] && costs[choice]->tied; }
};

// Nothing where no choice can be had.
[[nodiscard]] std::optional<Verdict> decide(std::span<const Evaluated> choices, const Preference& preference);

// figure of `over` / figure of `of` - 1, with its interval. Both have a figure. `tied` stays false.
[[nodiscard]] Cost difference(const Evaluated& of, const Evaluated& over);

}  // namespace dculab::study
