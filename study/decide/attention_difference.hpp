// Why a decode step costs more with one number of KV heads or block size than with another.
#pragma once

#include <string>

#include "core/step_plan.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/study/serving_setting.hpp"

namespace dculab::study {

// What attention costs in a step, by cause; means over steps.
struct AttentionCauses {
  double step = 0, attention = 0, memory = 0, latency = 0, lookups = 0, launch = 0, compute = 0;  // s
  double kv_bytes = 0;
  double wasted = 0;  // share of KV memory
};

// Adds a step with its share of the mean.
void add_to(AttentionCauses& causes, const StepPlan& plan, const sim::StepPrice& step, double weight);

// What attention of a step takes more or less of than another's: "more KV traffic". Empty where it takes as long, to a
// thousandth of the step.
[[nodiscard]] std::string attention_difference(const AttentionCauses& from, const AttentionCauses& to);
[[nodiscard]] std::string attention_difference(const sim::DecodeStep& from, const sim::DecodeStep& to);

// "1 KV head", "8 KV heads"
[[nodiscard]] std::string heads_text(int kv_heads);

}  // namespace dculab::study
