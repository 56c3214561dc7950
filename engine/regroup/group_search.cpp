#include "engine/regroup/group_search.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <utility>

namespace dculab::engine {
namespace {

using Labels = std::vector<int>;  // [heads]: the group of each, numbered by their first heads

Labels renumbered(const Labels& labels) {
  std::vector<int> numbers(labels.size(), -1);
  Labels result;
  int next = 0;
  for (const int label : labels) {
    int& number = numbers[static_cast<std::size_t>(label)];
    if (number < 0) number = next++;
    result.push_back(number);
  }
  return result;
}

Labels labels_of(const HeadGroups& groups, std::size_t heads) {
  Labels labels(heads);
  for (std::size_t group = 0; group < groups.size(); ++group)
    for (const int head : groups[group]) labels[static_cast<std::size_t>(head)] = static_cast<int>(group);
  return labels;
}

HeadGroups groups_of(const Labels& labels) {
  HeadGroups groups(static_cast<std::size_t>(*std::ranges::max_element(labels)) + 1);
  for (std::size_t head = 0; head < labels.size(); ++head)
    groups[static_cast<std::size_t>(labels[head])].push_back(static_cast<int>(head));
  return groups;
}

struct Individual {
  Labels labels;
  std::size_t groups = 0;
  double error = 0;
  int rank = 0;  // 0: no other dominates it
  double crowding = 0;
};

bool dominates(const Individual& a, const Individual& b) {
  return a.groups <= b.groups && a.error <= b.error && (a.groups < b.groups || a.error < b.error);
}

bool is_fitter(const Individual& a, const Individual& b) {
  return a.rank != b.rank ? a.rank < b.rank : a.crowding > b.crowding;
}

using Population = std::vector<Individual>;

// The fronts of a population, by repeatedly taking those that no one left is better than.
void set_ranks(Population& population) {
  for (Individual& each : population) each.rank = -1;
  const auto is_left = [](const Individual& each) { return each.rank < 0; };
  for (int rank = 0; std::ranges::any_of(population, is_left); ++rank) {
    std::vector<Individual*> front;
    for (Individual& each : population)
      if (is_left(each) && std::ranges::none_of(population, [&](const Individual& other) {
            return is_left(other) && dominates(other, each);
          }))
        front.push_back(&each);
    for (Individual* each : front) each->rank = rank;
  }
}

// How far the neighbours of a front are apart, in groups and in error; its ends stay whatever happens. In a front both
// orders are the same, backwards.
void set_crowding(std::vector<Individual*>& front) {
  std::ranges::stable_sort(front, {}, &Individual::groups);
  const auto range = [&front](auto value) { return std::max(value(*front.back()) - value(*front.front()), 1e-300); };
  const auto groups = [](const Individual& each) { return static_cast<double>(each.groups); };
  const auto error = [](const Individual& each) { return -each.error; };
  for (std::size_t i = 0; i < front.size(); ++i) {
    const bool is_end = i == 0 || i + 1 == front.size();
    front[i]->crowding = std::numeric_limits<double>::infinity();
    if (is_end) continue;
    front[i]->crowding = (groups(*front[i + 1]) - groups(*front[i - 1])) / range(groups) +
                         (error(*front[i + 1]) - error(*front[i - 1])) / range(error);
  }
}

void set_crowding(Population& population) {
  std::map<int, std::vector<Individual*>> fronts;
  for (Individual& each : population) fronts[each.rank].push_back(&each);
  for (auto& [rank, front] : fronts) set_crowding(front);
}

class Search {
 public:
  Search(int num_heads, const GroupError& error, const GroupSearch& search)
      : num_heads_(static_cast<std::size_t>(num_heads)), error_(error), search_(search), random_(search.seed) {}

  std::vector<GroupingPoint> run() {
    Population population = first_population();
    for (int generation = 0; generation < search_.generations; ++generation) {
      Population children;
      while (std::ssize(children) < search_.population)
        children.push_back(individual(mutated(crossed(parent(population), parent(population)))));
      std::ranges::move(children, std::back_inserter(population));
      population = survivors(std::move(population));
    }
    return front();
  }

 private:
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }

  double error_of(const std::vector<int>& group) {
    const auto [found, is_new] = known_.try_emplace(group);
    if (is_new) found->second = error_(group);
    return found->second;
  }

  // Keeps the best of each number of groups.
  Individual individual(const Labels& labels) {
    Individual result{.labels = renumbered(labels)};
    const HeadGroups groups = groups_of(result.labels);
    result.groups = groups.size();
    for (const std::vector<int>& group : groups) result.error += error_of(group);
    const auto [best, is_first] = best_.try_emplace(result.groups, result);
    if (!is_first && result.error < best->second.error) best->second = result;
    return result;
  }

  // All apart, then the two groups that lose least become one, until one is left; and neighbours.
  Population first_population() {
    Population population;
    HeadGroups groups = neighbour_groups(static_cast<int>(num_heads_), static_cast<int>(num_heads_));
    while (true) {
      population.push_back(individual(labels_of(groups, num_heads_)));
      if (groups.size() == 1) break;
      merge_nearest(groups);
    }
    for (int count = 2; count < static_cast<int>(num_heads_); ++count)
      if (static_cast<int>(num_heads_) % count == 0)
        population.push_back(individual(labels_of(neighbour_groups(static_cast<int>(num_heads_), count), num_heads_)));
    while (std::ssize(population) < search_.population) {
      Labels labels;
      const std::size_t count = 1 + below(num_heads_);
      for (std::size_t head = 0; head < num_heads_; ++head) labels.push_back(static_cast<int>(below(count)));
      population.push_back(individual(labels));
    }
    return survivors(std::move(population));
  }

  static std::vector<int> joined(const std::vector<int>& a, const std::vector<int>& b) {
    std::vector<int> heads;
    std::ranges::merge(a, b, std::back_inserter(heads));
    return heads;
  }

  void merge_nearest(HeadGroups& groups) {
    std::pair<std::size_t, std::size_t> nearest;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t b = 1; b < groups.size(); ++b)
      for (std::size_t a = 0; a < b; ++a) {
        const double added = error_of(joined(groups[a], groups[b])) - error_of(groups[a]) - error_of(groups[b]);
        if (added < least) least = added, nearest = {a, b};
      }
    groups[nearest.first] = joined(groups[nearest.first], groups[nearest.second]);
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(nearest.second));
  }

  const Labels& parent(const Population& population) {
    const Individual& a = population[below(population.size())];
    const Individual& b = population[below(population.size())];
    return (is_fitter(b, a) ? b : a).labels;
  }

  Labels crossed(const Labels& a, const Labels& b) {
    Labels child = a;
    for (std::size_t head = 0; head < num_heads_; ++head)
      if (below(2) == 0) child[head] = b[head];
    return child;
  }

  // A head moves to another group, or to one of its own; two heads change places; or two groups become one.
  Labels mutated(Labels labels) {
    labels = renumbered(labels);
    const std::size_t count = static_cast<std::size_t>(*std::ranges::max_element(labels)) + 1;
    const std::size_t kind = below(4), head = below(num_heads_), other = below(num_heads_);
    if (kind == 0)
      labels[head] = static_cast<int>(below(std::min(count + 1, num_heads_)));
    else if (kind == 1)
      std::swap(labels[head], labels[other]);
    else if (kind == 2)
      std::ranges::replace(labels, int{labels[head]}, int{labels[other]});
    return labels;  // kind 3: as it is
  }

  Population survivors(Population population) const {
    std::ranges::stable_sort(population, {}, &Individual::labels);
    const auto has_same_labels = [](const Individual& a, const Individual& b) { return a.labels == b.labels; };
    population.erase(std::unique(population.begin(), population.end(), has_same_labels), population.end());
    set_ranks(population);
    set_crowding(population);
    std::ranges::stable_sort(population, is_fitter);
    population.resize(std::min(population.size(), static_cast<std::size_t>(search_.population)));
    return population;
  }

  [[nodiscard]] std::vector<GroupingPoint> front() const {
    std::vector<GroupingPoint> points;
    for (const auto& [groups, best] : best_)
      if (points.empty() || best.error < points.back().error) points.push_back({groups_of(best.labels), best.error});
    return points;
  }

  std::size_t num_heads_;
  const GroupError& error_;
  GroupSearch search_;
  std::mt19937_64 random_;
  std::map<std::vector<int>, double> known_;
  std::map<std::size_t, Individual> best_;  // by number of groups
};

}  // namespace

std::vector<GroupingPoint> search_groups(int num_heads, const GroupError& error, const GroupSearch& search) {
  return Search(num_heads, error, search).run();
}

std::vector<LayersPoint> combine_fronts(std::span<const std::vector<GroupingPoint>> layers) {
  std::map<int, LayersPoint> best{{0, {}}};  // by KV heads, of the layers so far
  for (const std::vector<GroupingPoint>& front : layers) {
    std::map<int, LayersPoint> next;
    for (const auto& [kv_heads, before] : best)
      for (std::size_t i = 0; i < front.size(); ++i) {
        const int total = kv_heads + static_cast<int>(front[i].groups.size());
        const auto [found, is_first] = next.try_emplace(total);
        if (!is_first && found->second.error <= before.error + front[i].error) continue;
        found->second = {total, before.error + front[i].error, before.choice};
        found->second.choice.push_back(i);
      }
    best = std::move(next);
  }
  std::vector<LayersPoint> points;
  for (const auto& [kv_heads, point] : best)
    if (points.empty() || point.error < points.back().error) points.push_back(point);
  return points;
}

}  // namespace dculab::engine
