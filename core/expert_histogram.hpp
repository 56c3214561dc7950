// How often the tokens of steps chose each expert of a model, and how many of them a step needed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/expert_load.hpp"

namespace dculab {

struct ExpertHistogram {
  std::vector<std::vector<std::int64_t>> choices{};  // [layers][experts]: tokens; of a layer without experts empty
  std::int64_t layer_steps = 0;                      // steps, each counted once for every layer with experts
  std::int64_t touched_experts = 0;                  // that got a token, summed over those

  // `tokens`: of each expert in a step. Precondition: `choices` has the layer.
  void add(std::size_t layer, std::span<const std::int64_t> tokens);

  // What another one of the same model counted.
  void add(const ExpertHistogram& other);

  [[nodiscard]] bool is_empty() const { return layer_steps == 0; }

  // Distinct experts of a layer in a step, on average. Precondition: not empty; of the others too.
  [[nodiscard]] double distinct_experts() const;

  // Of a layer's choices, those of its most chosen expert; on average over the layers.
  [[nodiscard]] double hottest_share() const;

  // The choices as the simulator takes them: those of each layer from its most to its least chosen expert, added up,
  // since layers differ in which experts are chosen and not so much in how unevenly.
  [[nodiscard]] ExpertLoad load() const;
};

// The Zipf load under which `tokens` tokens touch `distinct` experts on average; all experts alike where that is as
// many as chance gives, or says nothing.
[[nodiscard]] ExpertLoad load_touching(double distinct, int num_experts, int per_token, double tokens);

}  // namespace dculab
