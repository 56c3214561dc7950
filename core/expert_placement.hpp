// Which devices of an expert-parallel group hold which experts, and what the busiest of them gets.
//
// Copies are placed as DeepSeek's EPLB does, by the load that was seen: the expert with the most load per copy gets one
// more, until all redundant copies are given; then each copy, the most loaded first, goes to the device with the least
// load that has room. Where whole groups of experts fit on a node, groups are packed to nodes first, in the same way,
// and both steps are done within a node: a token whose experts are of few groups then goes to few nodes. Source:
// deepseek-ai/EPLB, README.md (hierarchical and global load balancing).
//
// Where no load was seen, each device has as many consecutive experts (vLLM's `linear` placement, and SGLang's
// `trivial`). Groups are of consecutive experts too, so a node has whole groups, or a whole part of one, where the
// numbers divide.
//
// Experts have no names here but their ranks by load, and a hot expert may be anywhere: ranks are dealt round the
// groups, and, where no load was seen, round the devices.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace dculab {

enum class ExpertStatistics : std::uint8_t { none, seen };

struct PlacementRule {
  int devices = 1;
  int nodes = 1;      // that the devices are in, as many in each
  int groups = 1;     // of experts, see Experts::num_groups
  int redundant = 0;  // copies beside the first of each expert; needs `seen`
  ExpertStatistics statistics = ExpertStatistics::none;
};

struct ExpertPlacement {
  std::vector<std::vector<double>> devices;  // [devices][copies]: the probability with which a token goes to each copy
  bool groups_on_nodes = false;              // a node has whole groups, or a whole part of one and nothing of others
};

// Everything that keeps `experts` from being placed so; empty when nothing does.
[[nodiscard]] std::vector<std::string> problems(const PlacementRule& rule, int experts);

// `probabilities`: with which a token goes to each expert, the most loaded first. Preconditions: problems(rule,
// probabilities.size()) is empty.
[[nodiscard]] ExpertPlacement place_experts(std::span<const double> probabilities, const PlacementRule& rule);

// Of the copies of a device: the sum of their probabilities, which is the rows that a token brings it on average.
[[nodiscard]] double load_of(std::span<const double> copies);

// The probability that a token goes to any of copies that get `load` rows of it on average, of `per_token` in all.
[[nodiscard]] double reached(double load, double per_token);

}  // namespace dculab
