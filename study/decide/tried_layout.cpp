#include "study/decide/tried_layout.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "study/decide/serving_case.hpp"

namespace dculab::study {
namespace {

// What is wrong, without the file that it is wrong in.
[[nodiscard]] std::string reason_of(const InputError& error, const std::string& file) {
  const std::string text = error.what();
  return text.starts_with(file + ": ") ? text.substr(file.size() + 2) : text;
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

std::string why_none(const sim::Served& served) {
  return served.limit == sim::SequenceLimit::tpot ? "one sequence alone takes longer a token than slo.tpot"
                                                  : "not one sequence fits beside the weights";
}

std::string reasons_text(const std::vector<std::pair<std::string, std::string>>& found) {
  std::vector<std::pair<std::string, std::string>> reasons;  // and the layouts that each is of
  for (const auto& each : found) {
    const auto same = std::ranges::find(reasons, each.first, &std::pair<std::string, std::string>::first);
    if (same == reasons.end())
      reasons.push_back(each);
    else
      same->second += "; " + each.second;
  }
  std::string text;
  for (const auto& [reason, layouts] : reasons) text += (text.empty() ? "" : ". ") + reason + ": " + layouts;
  return text;
}

}  // namespace dculab::study
