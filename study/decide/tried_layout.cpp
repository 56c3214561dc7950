#include "study/decide/tried_layout.hpp"

#include <algorithm>

#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "study/decide/serving_case.hpp"

namespace dculab::study {
namespace {

// What is wrong, without the file that it is wrong in.
[[nodiscard]] std::string reason_of(const InputError& error, const std::string& file) {
  const std::string text = error.what();
  return text.starts_with(file + ": ") ? text.substr(file.size() + 2) : text;
}

[[nodiscard]] bool has_shortfall(const Refusal& refusal) { return refusal.missed || refusal.needed_devices; }

// Precondition: both are for the same reason and have a shortfall.
[[nodiscard]] bool is_closer(const Refusal& one, const Refusal& other) {
  return one.missed ? *one.missed < *other.missed : *one.needed_devices < *other.needed_devices;
}

[[nodiscard]] std::string shortfall_text(const Refusal& refusal) {
  if (refusal.missed) return ", " + config::short_text(*refusal.missed) + " at best";
  if (refusal.needed_devices) return ", " + std::to_string(*refusal.needed_devices) + " or more";
  return "";
}

}  // namespace

std::optional<Tried> tried_layout(const LayoutQuestion& question, const sim::ReplicaDevices& devices,
                                  Dtype kv_cache_dtype, std::string& why_not) {
  config::Scenario scenario = question.scenario;
  set_replica(devices, scenario.deployment);
  Tried tried;
  tried.layout.devices = devices;
  try {
    tried.serving = serving_case(scenario, question.machine, question.model, question.load);
  } catch (const InputError& error) {
    why_not = reason_of(error, scenario.file);
    return std::nullopt;
  }
  sim::Setting& setting = tried.layout.setting;
  setting = {question.model.heads().num_key_value_heads, kv_cache_dtype,
             question.block_size.value_or(tried.serving.options.block_size), sim::Setting{}.partition_tokens};
  if (is_sound(tried.serving, setting)) return tried;
  why_not = "its kernels take no such part of the model";
  return std::nullopt;
}

void set_why_none(Layout& layout) {
  if (layout.served.limit == sim::SequenceLimit::tpot) {
    layout.why_not = "one sequence alone takes longer a token than slo.tpot";
    layout.missed = layout.served.tpot;
  } else {
    layout.why_not = "not one sequence fits beside the weights";
  }
}

std::string reasons_text(const std::vector<Refusal>& found) {
  std::vector<Refusal> reasons;
  for (const Refusal& each : found) {
    const auto same = std::ranges::find(reasons, each.reason, &Refusal::reason);
    if (same == reasons.end())
      reasons.push_back(each);
    else if (!has_shortfall(each) || !has_shortfall(*same))
      same->layout += "; " + each.layout;
    else if (is_closer(each, *same))
      *same = each;
  }
  std::string text;
  for (const Refusal& each : reasons)
    text += (text.empty() ? "" : ". ") + each.reason + shortfall_text(each) + ": " + each.layout;
  return text;
}

}  // namespace dculab::study
