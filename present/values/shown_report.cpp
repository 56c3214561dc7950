#include "present/values/shown_report.hpp"

#include <utility>

#include "config/unit_text.hpp"
#include "config/weight_format_text.hpp"
#include "present/values/machine_figures.hpp"
#include "present/values/model_values.hpp"
#include "present/values/stack_values.hpp"

namespace dculab::present {
namespace {

void add_shown(Report& report, const std::string& key, const std::string& value, const std::string& kind,
               const std::string& source) {
  report.tables.front().rows.push_back({key, value, kind, source});
  report.json["values"].push_back({{"key", key}, {"value", value}, {"kind", kind}, {"source", source}});
}

[[nodiscard]] Report empty_shown(std::string heading) {
  Report report{"dculab/show/1", {std::move(heading)}, {Table{}}, Json{{"values", Json::array()}}};
  report.tables.front().columns = {"key", "value", "kind", "source"};
  return report;
}

void add_values(Report& report, const std::vector<MachineFigure>& values) {
  for (const MachineFigure& value : values) add_shown(report, value.key, value.value, value.kind, value.source);
}

void add_document(Report& report, const Node& node, const std::string& path, const std::string& file) {
  for (const Node& child : node.children) {
    const std::string key = path.empty() ? child.key : child.key.empty() ? path + "[]" : path + "." + child.key;
    if (child.kind == NodeKind::scalar)
      add_shown(report, key, child.text, "",
                child.origin.empty() ? file + ":" + std::to_string(child.place.line) : child.origin);
    else
      add_document(report, child, key, file);
  }
}

void add_kernel_options(Report& report, const EngineOptions& options, const std::string& source) {
  const AttentionSplit& split = options.attention_split;
  const auto add = [&](const char* key, const std::string& value) { add_shown(report, key, value, "", source); };
  add("engine.activation_dtype", std::string(name(options.activation_dtype)));
  add("attention.partition_tokens", std::to_string(split.partition_tokens));
  const int heads = split.query_heads_per_workgroup;
  add("attention.query_heads_per_workgroup", heads == 0 ? "group" : std::to_string(heads));
}

// The defaults that the file leaves in force.
void add_effective(Report& report, const EngineOptions& options, const ModelShape& model) {
  const auto add = [&](const char* key, const std::string& value) { add_shown(report, key, value, "", "effective"); };
  add("model.num_key_value_heads", std::to_string(model.heads().num_key_value_heads));
  add("weights", config::weight_format_text(options.weights));
  add("kv_cache.block_size", std::to_string(options.block_size));
  add("kv_cache.dtype", std::string(name(options.kv_cache_dtype)));
  add("kv_cache.retention", std::string(name(options.kv_retention.policy)));
  add("kv_cache.skip", text_of(options.kv_skip));
  add("engine.enable_prefix_caching", options.enable_prefix_caching ? "true" : "false");
  if (options.enable_prefix_caching) add("engine.prefix_eviction", std::string(name(options.prefix_eviction)));
  add("engine.max_num_seqs", std::to_string(options.max_num_seqs));
  add("engine.max_num_batched_tokens", std::to_string(options.max_num_batched_tokens));
  const bool swaps = options.preemption_mode == PreemptionMode::swap;
  add("engine.preemption_mode", swaps ? "swap" : "recompute");
  if (swaps) add("engine.swap_space", config::short_text(options.swap_space));
}

[[nodiscard]] Report report_of(const study::ShownMachine& shown) {
  Report report = empty_shown("machine " + shown.file.string());
  if (shown.machine.redesign) report.heading.push_back(redesign_text(shown.machine));
  add_values(report, machine_figures(shown.machine));
  return report;
}

[[nodiscard]] Report report_of(const study::ShownStack& shown) {
  Report report = empty_shown("stack " + shown.file.string() + ": " + shown.stack.description);
  add_values(report, stack_values(shown.stack));
  return report;
}

[[nodiscard]] Report report_of(const study::ShownModel& shown) {
  Report report = empty_shown("model " + shown.folder.string());
  add_values(report, model_values(shown.model));
  return report;
}

[[nodiscard]] Report report_of(const study::ShownScenario& shown) {
  const config::Scenario& scenario = shown.scenario;
  Report report = empty_shown("scenario " + shown.file.string() + ": " + scenario.question);
  add_document(report, scenario.document, "", shown.file.filename().string());
  add_effective(report, shown.options, shown.model);
  add_kernel_options(report, shown.options, "effective on " + scenario.machines.front());
  return report;
}

}  // namespace

Report shown_report(const study::Shown& shown) {
  return std::visit([](const auto& each) { return report_of(each); }, shown);
}

}  // namespace dculab::present
