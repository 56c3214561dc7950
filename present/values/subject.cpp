#include "present/values/subject.hpp"

#include <algorithm>

#include "config/weight_format_text.hpp"
#include "model/folder/model_config.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::present {
namespace {

// By an axis of its own or of its section, or by a variant.
[[nodiscard]] bool is_changed(const config::Scenario& scenario, const std::string& key) {
  const auto is_of = [&key](const std::string& changed) { return key == changed || key.starts_with(changed + "."); };
  const auto changes = [&is_of](const config::Variant& variant) {
    return std::ranges::any_of(variant.changes, [&is_of](const auto& change) { return is_of(change.first); });
  };
  return std::ranges::any_of(scenario.sweep, [&is_of](const config::SweepAxis& axis) { return is_of(axis.key); }) ||
         (scenario.compare && std::ranges::any_of(scenario.compare->variants, changes));
}

[[nodiscard]] std::string phase_text(Phase phase) { return phase == Phase::decode ? "decode" : "prefill"; }

[[nodiscard]] std::optional<int> length_of(const LengthDistribution& lengths) {
  return when(lengths.kind == LengthKind::fixed, [&] { return static_cast<int>(lengths.center); });
}

void add_workload(const config::Workload& workload, Subject& subject) {
  if (workload.kind == config::WorkloadKind::step) {
    subject.phase = phase_text(workload.phase);
    subject.batch = workload.batch;
    subject.context_tokens = workload.context_tokens;
    return;
  }
  const RequestWorkload& served = workload.served;
  if (served.requests != config::kAllRequests) subject.requests = served.requests;
  if (!workload.file.empty()) return;  // whose lengths differ
  subject.prompt_tokens = length_of(served.prompt);
  subject.output_tokens = length_of(served.output);
}

void leave_out_changed(const config::Scenario& scenario, Subject& subject) {
  const auto leave_out = [&scenario](const char* key, auto& value) {
    if (is_changed(scenario, key)) value.reset();
  };
  leave_out("model", subject.model);
  leave_out("stack", subject.stack);
  leave_out("stack.name", subject.stack);
  leave_out("weights", subject.weights);
  leave_out("kv_cache.dtype", subject.kv_cache_dtype);
  leave_out("model.num_key_value_heads", subject.kv_heads);
  leave_out("deployment.tensor_parallel_size", subject.devices);
  leave_out("workload.phase", subject.phase);
  leave_out("workload.batch", subject.batch);
  leave_out("workload.context_tokens", subject.context_tokens);
  leave_out("workload.requests", subject.requests);
  leave_out("workload.prompt_tokens", subject.prompt_tokens);
  leave_out("workload.output_tokens", subject.output_tokens);
}

[[nodiscard]] std::optional<int> if_several(int devices) {
  return when(devices > 1, [devices] { return devices; });
}

}  // namespace

Subject subject_of(const config::Scenario& scenario) {
  Subject subject;
  const ModelShape model = read_model_shape(study::find_model(scenario.model.name));
  subject.model = model.name;
  subject.stack = scenario.stack;
  subject.weights = config::weight_format_text(scenario.weights.value_or(model.layer_format()));
  subject.kv_cache_dtype = name(scenario.options.kv_cache_dtype);
  const auto heads = scenario.model.overrides.find("num_key_value_heads");
  if (heads != scenario.model.overrides.end()) subject.kv_heads = heads->second;
  subject.devices = if_several(scenario.deployment.tensor_parallel_size);
  add_workload(scenario.workload, subject);
  leave_out_changed(scenario, subject);
  return subject;
}

Subject subject_of(const study::Prediction& prediction) {
  const Batch& batch = prediction.plan.batch;
  const SequenceSlice& slice = batch.sequences.front();
  const Heads heads = prediction.whole.heads();
  return {.model = prediction.whole.name,
          .stack = prediction.machine.stack.name,
          .weights = config::weight_format_text(prediction.options.weights),
          .kv_cache_dtype = std::string(name(prediction.options.kv_cache_dtype)),
          .phase = phase_text(slice.phase),
          .kv_heads = when(!prediction.whole.has_latents(), [&heads] { return heads.num_key_value_heads; }),
          .devices = if_several(prediction.model.tensor_parallel_size),
          .batch = static_cast<int>(batch.sequences.size()),
          .context_tokens = slice.context_tokens()};
}

}  // namespace dculab::present
