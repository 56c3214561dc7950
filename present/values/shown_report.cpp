#include "present/values/shown_report.hpp"

#include <utility>

#include "config/unit_text.hpp"
#include "config/weight_format_text.hpp"
#include "present/output/field_csv.hpp"
#include "present/values/machine_figures.hpp"
#include "present/values/model_values.hpp"
#include "present/values/stack_values.hpp"

namespace dculab::present {
namespace {

constexpr std::size_t kUsualWidth = 100;  // sources have hundreds of columns

using Values = std::vector<MachineFigure>;

[[nodiscard]] Report values_report(std::string heading, Values values) {
  ReportedValues reported;
  for (MachineFigure& each : values) {
    std::optional<Measure> measure = find_measure(each.value);
    reported.values.push_back({std::move(each), measure});
  }
  Report report = report_of("dculab/show/1", reported, {std::move(heading)});
  Table& table = report.tables.emplace_back();
  table.columns = {"key", "value", "kind", "source"};
  table.usual_width = kUsualWidth;
  for (const ShownValue& each : reported.values)
    table.rows.push_back({each.figure.key, readable(each.figure.value), each.figure.kind, each.figure.source});
  return report;
}

void add_document(Values& values, const Node& node, const std::string& path, const std::string& file) {
  for (const Node& child : node.children) {
    const std::string key = path.empty() ? child.key : child.key.empty() ? path + "[]" : path + "." + child.key;
    if (child.kind == NodeKind::scalar)
      values.push_back(
          {key, child.text, "", child.origin.empty() ? file + ":" + std::to_string(child.place.line) : child.origin});
    else
      add_document(values, child, key, file);
  }
}

void add_kernel_options(Values& values, const EngineOptions& options, const std::string& source) {
  const AttentionSplit& split = options.attention_split;
  const auto add = [&](const char* key, const std::string& value) { values.push_back({key, value, "", source}); };
  add("engine.activation_dtype", std::string(name(options.activation_dtype)));
  add("attention.partition_tokens", std::to_string(split.partition_tokens));
  const int heads = split.query_heads_per_workgroup;
  add("attention.query_heads_per_workgroup", heads == 0 ? "group" : std::to_string(heads));
}

// The defaults that the file leaves in force.
void add_effective(Values& values, const EngineOptions& options, const ModelShape& model) {
  const auto add = [&](const char* key, const std::string& value) { values.push_back({key, value, "", "effective"}); };
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
  Report report = values_report("machine " + shown.file.string(), machine_figures(shown.machine));
  if (shown.machine.redesign) report.heading.push_back(redesign_text(shown.machine));
  return report;
}

[[nodiscard]] Report report_of(const study::ShownStack& shown) {
  return values_report("stack " + shown.file.string() + ": " + shown.stack.description, stack_values(shown.stack));
}

[[nodiscard]] Report report_of(const study::ShownModel& shown) {
  return values_report("model " + shown.folder.string(), model_values(shown.model));
}

[[nodiscard]] Report report_of(const study::ShownScenario& shown) {
  const config::Scenario& scenario = shown.scenario;
  Values values;
  add_document(values, scenario.document, "", shown.file.filename().string());
  add_effective(values, shown.options, shown.model);
  add_kernel_options(values, shown.options, "effective on " + scenario.machines.front());
  return values_report("scenario " + shown.file.string() + ": " + scenario.question, std::move(values));
}

}  // namespace

Report shown_report(const study::Shown& shown) {
  return std::visit([](const auto& each) { return report_of(each); }, shown);
}

}  // namespace dculab::present
