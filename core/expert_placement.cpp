#include "core/expert_placement.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace dculab {
namespace {

struct Copy {
  std::size_t expert;
  double load;
};

// The items of each of `bins` bins of equal size. Items are placed in falling order of their load, each into the least
// loaded bin with room.
template <class Item>
[[nodiscard]] std::vector<std::vector<Item>> packed(std::vector<Item> items, int bins,
                                                    const std::function<double(const Item&)>& load) {
  std::ranges::stable_sort(items, std::greater(), load);
  const std::size_t room = items.size() / static_cast<std::size_t>(bins);
  std::vector<std::vector<Item>> result(static_cast<std::size_t>(bins));
  std::vector<double> loads(result.size());
  for (const Item& item : items) {
    std::size_t least = result.size();
    for (std::size_t bin = 0; bin < result.size(); ++bin)
      if (result[bin].size() < room && (least == result.size() || loads[bin] < loads[least])) least = bin;
    result[least].push_back(item);
    loads[least] += load(item);
  }
  return result;
}

[[nodiscard]] double load_of_copy(const Copy& copy) { return copy.load; }

// One copy of each, and `redundant` more of those with the most load per copy.
[[nodiscard]] std::vector<Copy> replicated(std::span<const double> probabilities, std::span<const std::size_t> experts,
                                           int redundant) {
  std::vector<int> counts(experts.size(), 1);
  for (int given = 0; given < redundant; ++given) {
    std::size_t hottest = 0;
    const auto per_copy = [&](std::size_t index) { return probabilities[experts[index]] / counts[index]; };
    for (std::size_t index = 1; index < experts.size(); ++index)
      if (per_copy(index) > per_copy(hottest)) hottest = index;
    ++counts[hottest];
  }
  std::vector<Copy> copies;
  for (std::size_t index = 0; index < experts.size(); ++index)
    for (int copy = 0; copy < counts[index]; ++copy)
      copies.push_back({experts[index], probabilities[experts[index]] / counts[index]});
  return copies;
}

[[nodiscard]] bool fits_groups_on_nodes(const PlacementRule& rule, std::size_t experts) {
  return rule.groups > 1 && rule.nodes > 1 && rule.groups % rule.nodes == 0 && rule.devices % rule.nodes == 0 &&
         rule.redundant % rule.nodes == 0 && experts % static_cast<std::size_t>(rule.groups) == 0;
}

// Experts in order, as many to each device: a node has whole groups, or a whole part of one.
[[nodiscard]] bool splits_groups_by_nodes(const PlacementRule& rule, std::size_t experts) {
  return rule.groups > 1 && rule.nodes > 1 && (rule.groups % rule.nodes == 0 || rule.nodes % rule.groups == 0) &&
         rule.devices % rule.nodes == 0 && experts % static_cast<std::size_t>(rule.groups) == 0;
}

void add_devices(const std::vector<std::vector<Copy>>& packs, ExpertPlacement& placement) {
  for (const std::vector<Copy>& pack : packs) {
    std::vector<double>& device = placement.devices.emplace_back();
    for (const Copy& copy : pack) device.push_back(copy.load);
  }
}

struct Group {
  std::vector<std::size_t> experts;
  double load = 0;
};

// Every group to a node, as many to each; then copies within the nodes.
void place_by_groups(std::span<const double> probabilities, const PlacementRule& rule, ExpertPlacement& placement) {
  std::vector<Group> groups(static_cast<std::size_t>(rule.groups));
  for (std::size_t expert = 0; expert < probabilities.size(); ++expert) {
    Group& group = groups[expert % groups.size()];
    group.experts.push_back(expert);
    group.load += probabilities[expert];
  }
  const auto nodes = packed<Group>(groups, rule.nodes, [](const Group& group) { return group.load; });
  for (const std::vector<Group>& node : nodes) {
    std::vector<std::size_t> experts;
    for (const Group& group : node) experts.insert(experts.end(), group.experts.begin(), group.experts.end());
    add_devices(packed<Copy>(replicated(probabilities, experts, rule.redundant / rule.nodes), rule.devices / rule.nodes,
                             load_of_copy),
                placement);
  }
}

}  // namespace

std::vector<std::string> problems(const PlacementRule& rule, int experts) {
  std::vector<std::string> found;
  const auto text = [](int count) { return std::to_string(count); };
  if (rule.devices > experts + rule.redundant)
    found.push_back(text(rule.devices) + " devices share " + text(experts + rule.redundant) +
                    " experts: some would have none");
  else if ((experts + rule.redundant) % rule.devices != 0)
    found.push_back(text(experts) + " experts" +
                    (rule.redundant > 0 ? " and " + text(rule.redundant) + " redundant ones" : "") +
                    " do not divide over " + text(rule.devices) + " devices; " +
                    text(rule.devices - (experts + rule.redundant) % rule.devices) + " more redundant ones (" +
                    "num_redundant_experts) would");
  return found;
}

ExpertPlacement place_experts(std::span<const double> probabilities, const PlacementRule& rule) {
  ExpertPlacement placement;
  const auto devices = static_cast<std::size_t>(rule.devices);
  if (rule.statistics == ExpertStatistics::none) {
    placement.devices.resize(devices);
    for (std::size_t expert = 0; expert < probabilities.size(); ++expert)
      placement.devices[expert % devices].push_back(probabilities[expert]);
    placement.groups_on_nodes = splits_groups_by_nodes(rule, probabilities.size());
    return placement;
  }
  placement.groups_on_nodes = fits_groups_on_nodes(rule, probabilities.size());
  if (placement.groups_on_nodes) {
    place_by_groups(probabilities, rule, placement);
    return placement;
  }
  std::vector<std::size_t> experts(probabilities.size());
  std::iota(experts.begin(), experts.end(), std::size_t{0});
  add_devices(packed<Copy>(replicated(probabilities, experts, rule.redundant), rule.devices, load_of_copy), placement);
  return placement;
}

double load_of(std::span<const double> copies) { return std::accumulate(copies.begin(), copies.end(), 0.0); }

double reached(double load, double per_token) { return 1 - std::pow(1 - std::min(1.0, load / per_token), per_token); }

}  // namespace dculab
