#include "sim/cost/micro_batches.hpp"

#include <algorithm>
#include <array>

namespace dculab::sim {
namespace {

// Of all layers of a kind, in both micro-batches.
struct KindTime {
  Seconds compute, exchange, taken;  // taken: exchange times its share of the units
};

constexpr std::size_t kMostKinds = 256;  // Op::layer_kind
using KindTimes = std::array<KindTime, kMostKinds>;

[[nodiscard]] bool moves_tokens(const Op& op) {
  return op.kind == OpKind::dispatch_tokens || op.kind == OpKind::return_tokens;
}

// Returns what is outside of the layers.
[[nodiscard]] Seconds add(const StepPlan& plan, const StepPrice& price, KindTimes& kinds) {
  Seconds outside;
  for (std::size_t index = 0; index < plan.ops.size(); ++index) {
    const Op& op = plan.ops[index];
    const Seconds time = price.ops[index].all_executions();
    KindTime& kind = kinds[op.layer_kind];
    if (op.stage != Stage::layer)
      outside += time;
    else if (moves_tokens(op))
      kind.exchange += time, kind.taken += price.ops[index].taken_units * time;
    else
      kind.compute += time;
  }
  return outside;
}

}  // namespace

bool split_batch(const Batch& whole, Batch& first, Batch& second) {
  const std::int64_t tokens = whole.num_tokens();
  if (tokens < 2) return false;
  first.sequences.clear(), second.sequences.clear();
  first.cold_share = second.cold_share = whole.cold_share;
  first.filters_logits = second.filters_logits = whole.filters_logits;
  std::int64_t left = (tokens + 1) / 2;
  for (SequenceSlice slice : whole.sequences) {
    if (left >= slice.num_new_tokens) {
      left -= slice.num_new_tokens;
      first.sequences.push_back(slice);
      continue;
    }
    if (left > 0) {  // its later tokens attend to the earlier ones, whose K and V the other micro-batch writes first
      SequenceSlice before = slice;
      before.num_new_tokens = static_cast<int>(left);
      before.num_logits = 0;
      before.num_unwritten_tokens = std::min(slice.num_unwritten_tokens, before.num_new_tokens);
      slice.num_unwritten_tokens -= before.num_unwritten_tokens;
      slice.num_computed_tokens += before.num_new_tokens;
      slice.num_new_tokens -= before.num_new_tokens;
      slice.num_logits = std::min(slice.num_logits, slice.num_new_tokens);
      slice.num_newly_evicted_tokens = 0;
      first.sequences.push_back(before);
      left = 0;
    }
    second.sequences.push_back(slice);
  }
  return true;
}

OverlappedPrice overlapped(const Machine& machine, const StepPlan& first, const StepPrice& first_price,
                           const StepPlan& second, const StepPrice& second_price) {
  KindTimes kinds{};
  OverlappedPrice result;
  const Seconds once = machine.stack.host_per_step.value_or(machine.overheads.host_per_step);
  result.host = first_price.host + second_price.host - once;
  result.sampling = first_price.sampling + second_price.sampling;
  result.seconds = result.host + result.sampling;
  result.seconds += add(first, first_price, kinds);
  result.seconds += add(second, second_price, kinds);
  for (const KindTime& kind : kinds) {
    const Seconds time = std::max(kind.exchange, kind.compute + kind.taken);
    result.seconds += time;
    result.hidden += kind.compute + kind.exchange - time;
  }
  return result;
}

}  // namespace dculab::sim
