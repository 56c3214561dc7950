#include "engine/measure/step_sample.hpp"

#include <string>

#include "model/few_heads.hpp"

namespace dculab::engine {

// Vitter's algorithm R.
void StepSample::add(const ServedStep& step, double cold_share) {
  ++seen_;
  std::size_t place = steps_.size();
  if (place == most_) {
    place = std::uniform_int_distribution<std::uint64_t>(0, seen_ - 1)(random_);
    if (place >= most_) return;
  } else {
    steps_.emplace_back();
  }
  TraceStep& kept = steps_[place];
  kept = {};
  kept.id = "step " + std::to_string(seen_);
  kept.model = model_;
  kept.options = options_;
  if (step.plan.batch.head_set == HeadSet::few) {
    kept.model = *few_heads_;
    kept.options = options_of_few(options_, model_, *few_heads_);
  }
  kept.batch.sequences = step.plan.batch.sequences;
  kept.batch.cold_share = cold_share;
  kept.duration = step.end - step.begin - step.drafting;
  kept.drafts = step.drafts;
  kept.drafting = step.drafting;
  kept.repeats = 1;
  if (step.result.op_durations.empty()) return;
  for (const Op& op : step.plan.ops) kept.op_names.emplace_back(op.name);
  kept.op_durations = step.result.op_durations;
}

}  // namespace dculab::engine
