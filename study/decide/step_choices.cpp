#include "study/decide/step_choices.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <utility>

namespace dculab::study {
namespace {

// Its figure is the logarithm still.
void add_workload(Evaluated& evaluated, const PricedChoice& price, double share) {
  evaluated.figure -= share * std::log(price.seconds.value());
  evaluated.shifts.resize(price.shifts.size());
  for (std::size_t cause = 0; cause < price.shifts.size(); ++cause)
    evaluated.shifts[cause] -= share * price.shifts[cause];
}

// Nothing where none can be had.
[[nodiscard]] std::optional<Contest> contest(const EvaluatedChoices& all, std::vector<sim::Choice> choices,
                                             bool by_block, const Preference& preference) {
  Contest result{std::move(choices), {}, {}};
  for (const sim::Choice& choice : result.choices) {
    result.evaluated.push_back(all.at(choice));
    result.evaluated.back().value = std::to_string(by_block ? choice.block_size : choice.kv_heads);
  }
  const auto verdict = decide(result.evaluated, preference);
  if (!verdict) return std::nullopt;
  result.verdict = *verdict;
  return result;
}

// The fastest choice of each number of KV heads, the most first.
[[nodiscard]] std::vector<sim::Choice> fastest_of_heads(const EvaluatedChoices& all) {
  std::map<int, sim::Choice, std::greater<>> fastest;
  for (const auto& [choice, evaluated] : all) {
    const auto [place, is_new] = fastest.try_emplace(choice.kv_heads, choice);
    if (!is_new && evaluated.figure > all.at(place->second).figure) place->second = choice;
  }
  std::vector<sim::Choice> choices;
  for (const auto& [heads, choice] : fastest) choices.push_back(choice);
  return choices;
}

[[nodiscard]] std::optional<int> choose_heads(const EvaluatedChoices& all, int own,
                                              const std::optional<AllowedHeads>& allowed) {
  std::vector<sim::Choice> choices = fastest_of_heads(all);
  if (!allowed) {
    std::erase_if(choices, [&all](const sim::Choice& choice) { return !(all.at(choice).figure > 0); });
    if (choices.empty()) return std::nullopt;
    const auto found = std::ranges::find(choices, own, &sim::Choice::kv_heads);
    return (found == choices.end() ? choices.front() : *found).kv_heads;
  }
  std::erase_if(choices, [&](const sim::Choice& choice) {
    return std::ranges::find(allowed->kv_heads, choice.kv_heads) == allowed->kv_heads.end();
  });
  const auto found = contest(all, choices, false, {.given_up = allowed->given_up});
  return found ? std::optional(found->choices[found->verdict.chosen].kv_heads) : std::nullopt;
}

[[nodiscard]] std::vector<sim::Choice> blocks_of(const EvaluatedChoices& all, int kv_heads, int usual) {
  std::vector<int> sizes;
  for (const auto& [choice, evaluated] : all)
    if (choice.kv_heads == kv_heads) sizes.push_back(choice.block_size);
  std::vector<sim::Choice> choices;
  for (const int size : by_preference(std::move(sizes), usual)) choices.push_back({kv_heads, size});
  return choices;
}

[[nodiscard]] std::vector<sim::Choice> heads_of(const EvaluatedChoices& all, int block_size) {
  std::vector<sim::Choice> choices;
  for (const auto& [choice, evaluated] : all)
    if (choice.block_size == block_size) choices.insert(choices.begin(), choice);
  return choices;
}

}  // namespace

EvaluatedChoices over_workloads(std::span<const PricedChoice> prices) {
  std::set<std::size_t> workloads;
  std::map<sim::Choice, std::size_t> counts;
  std::set<sim::Choice> without_room;
  for (const PricedChoice& price : prices) {
    workloads.insert(price.workload);
    ++counts[price.choice];
    if (!price.fits) without_room.insert(price.choice);
  }
  const bool any_fits = without_room.size() < counts.size();
  const double share = 1.0 / static_cast<double>(workloads.size());
  EvaluatedChoices result;
  for (const PricedChoice& price : prices)
    if (counts.at(price.choice) == workloads.size()) add_workload(result[price.choice], price, share);
  for (auto& [choice, evaluated] : result)
    evaluated.figure = any_fits && without_room.contains(choice) ? 0 : std::exp(evaluated.figure);
  return result;
}

std::optional<StepDecision> decide_steps(const EvaluatedChoices& choices, int own_kv_heads, int usual_block_size,
                                         const std::optional<AllowedHeads>& allowed) {
  const std::optional<int> heads = choose_heads(choices, own_kv_heads, allowed);
  if (!heads) return std::nullopt;
  auto blocks = contest(choices, blocks_of(choices, *heads, usual_block_size), true, {});
  if (!blocks) return std::nullopt;
  StepDecision decision;
  decision.choice = blocks->choices[blocks->verdict.chosen];
  decision.blocks = std::move(*blocks);
  decision.kv_heads = *contest(choices, heads_of(choices, decision.choice.block_size), false, {});
  decision.front = speed_front(decision.kv_heads.evaluated);
  decision.fastest = std::ranges::max_element(choices, {}, [](const auto& each) { return each.second.figure; })->first;
  return decision;
}

std::vector<bool> speed_front(std::span<const Evaluated> evaluated) {
  std::vector<bool> front;
  double fastest = 0;
  for (const Evaluated& each : evaluated) {
    front.push_back(each.figure > fastest);
    fastest = std::max(fastest, each.figure);
  }
  return front;
}

std::vector<int> by_preference(std::vector<int> block_sizes, int usual) {
  std::ranges::sort(block_sizes);
  std::stable_partition(block_sizes.begin(), block_sizes.end(), [usual](int size) { return size == usual; });
  return block_sizes;
}

}  // namespace dculab::study
