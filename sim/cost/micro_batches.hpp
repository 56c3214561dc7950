// Two micro-batches of an expert-parallel step, whose exchanges hide behind each other's arithmetic (dual-batch
// overlap: vLLM's --enable-dbo, SGLang's --enable-two-batch-overlap). For the layers of each kind:
//
//   compute  = what both micro-batches compute, each priced with its own half of the tokens: weights are read twice
//   exchange = dispatch and combine of both
//   time     = max(exchange, compute + share of the units that exchange takes * exchange)
//
// since one micro-batch computes while the other's tokens are under way, and kernels that move tokens leave the others
// fewer units for as long. Layers without experts, what is outside of the layers and the host overlap with nothing;
// what the host does once for a step it does once. The first attention and the last combine of a step, which have
// nothing beside them, are not counted.
#pragma once

#include "sim/cost/step_price.hpp"

namespace dculab::sim {

// `whole` cut into two with as many new tokens each: sequences in order, and a prompt's chunk in two where the middle
// lies. False where one of them would have no token; then nothing is changed.
[[nodiscard]] bool split_batch(const Batch& whole, Batch& first, Batch& second);

struct OverlappedPrice {
  Seconds seconds;
  Seconds host;
  Seconds sampling;
  Seconds hidden;  // of exchanges, behind arithmetic: seconds + hidden is what both would take one after the other
};

// Of the plans and prices of both. Preconditions: plans of two parts of one batch, of the same model and options.
[[nodiscard]] OverlappedPrice overlapped(const Machine& machine, const StepPlan& first, const StepPrice& first_price,
                                         const StepPlan& second, const StepPrice& second_price);

}  // namespace dculab::sim
