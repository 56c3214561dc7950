// The experts that the tokens of a step chose in the layer that runs, and how often each was chosen so far.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/expert_histogram.hpp"
#include "kernels/expert_ops.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

[[nodiscard]] kernels::RouterRule router_rule(const Experts& experts);

// Throws InputError where a router's logits left tokens of the step without experts.
void require_routed(int bad_tokens, int layer);

// What was counted since the last call.
[[nodiscard]] ExpertHistogram take(ExpertHistogram& histogram);

class ExpertRouting {
 public:
  explicit ExpertRouting(const ModelShape& shape);

  // Makes room for the choices of `tokens` tokens. Allocates nothing where there is room already.
  void make_room(int tokens);

  // In layers with `experts`, with room for the tokens of the step.
  [[nodiscard]] kernels::ExpertChoices choices();

  // Once the router of `layer` has chosen.
  void count(int layer, const Experts& experts);
  // The same of `chosen` experts, [tokens, experts of a token]: of tokens that others have routed too.
  void count(int layer, const Experts& experts, std::span<const std::int32_t> chosen);

  // What was counted since the last call.
  [[nodiscard]] ExpertHistogram take_histogram();

 private:
  std::vector<std::int32_t> experts_, choice_rows_, row_tokens_;  // [tokens, the most experts of a token]
  std::vector<float> weights_;                                    // likewise
  std::vector<std::int32_t> first_rows_;                          // [the most experts of a layer + 1]
  std::vector<std::int64_t> tokens_;                              // [the most experts of a layer]
  int most_per_token_ = 0;
  ExpertHistogram histogram_;
};

}  // namespace dculab::engine
