// What a scenario may have, and which of it, dotted, its sweep and its variants may change.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "config/compare_reader.hpp"
#include "config/deployment_reader.hpp"
#include "config/figure_keys.hpp"
#include "config/model_sizes.hpp"
#include "config/options_reader.hpp"
#include "config/scenario_reader.hpp"
#include "config/search_reader.hpp"
#include "config/sweep_reader.hpp"
#include "config/weight_format_text.hpp"
#include "config/workload_reader.hpp"
#include "fields/near_words.hpp"
#include "sim/hardware/machine_fields.hpp"
#include "sim/hardware/stack_fields.hpp"

namespace dculab::config {
namespace {

constexpr std::array<std::string_view, 6> kNotSwept{"schema", "question", "sweep", "compare", "constraints", "then"};

// Sections with keys of other sections, or of the scenario itself.
[[nodiscard]] bool is_setting(std::string_view section) {
  return std::ranges::find(kNotSwept, section) != kNotSwept.end();
}

// The figures of a section as changes. `section` is a regular expression of what stands before their keys.
template <class Fields>
void add_changes(std::vector<FileKey>& keys, const std::string& shown, const std::string& section,
                 const Fields& fields) {
  for (const auto& field : fields) {
    FileKey& key = keys.emplace_back(changed_figure("^" + section + std::string(field.info.key) + "$", field.info));
    key.key = shown + key.key;
  }
}

[[nodiscard]] FileKey named_key() {
  FileKey name{.key = "name", .meaning = "a name, or a file"};
  name.values = {FileValue{}};
  return name;
}

// Those of a machine, by regular expressions of their keys.
[[nodiscard]] std::vector<FileKey> machine_changes() {
  std::vector<FileKey> keys;
  add_changes(keys, "", "", sim::kDesign);
  keys.back().values.push_back(FileValue{});  // a state of the clock
  add_changes(keys, "peaks.<dtype>.", "peaks\\.[a-z0-9_]+\\.", sim::kPeak);
  for (const sim::FigureInfo* info : sim::kMatmuls) {
    const std::string section(info->key);
    keys.push_back(changed_figure("^" + section + "\\.[a-z0-9_]+\\.rows_[1-9][0-9]*$", *info));
    keys.back().key = section + ".<weights>_<activations>.rows_<m>";
  }
  add_changes(keys, "memory.<level>.", "memory\\.[^.]+\\.", sim::kLevel);
  add_changes(keys, "waves.", "waves\\.", sim::kWaves);
  add_changes(keys, "overheads.", "overheads\\.", sim::kOverheads);
  add_changes(keys, "sustained.", "sustained\\.", sim::kSustained);
  add_changes(keys, "", "", sim::kLinks);
  add_changes(keys, "power.", "power\\.", sim::kPower);
  add_changes(keys, "", "", sim::kPrice);
  return keys;
}

// Those of a stack, and parameters of its kernels.
[[nodiscard]] std::vector<FileKey> stack_changes() {
  std::vector<FileKey> keys;
  add_changes(keys, "reached.", "reached\\.", sim::kReached);
  add_changes(keys, "", "", sim::kStackFigures);
  FileKey& parameter = keys.emplace_back(
      many_keys("parameters.<kernel>.<name>", "^parameters\\.[^.]+\\.[^.]+$", {.kind = ValueKind::whole}));
  parameter.meaning = "a parameter of a kernel";
  return keys;
}

// A name, or a map with a name and changes.
[[nodiscard]] FileKey named_or_changed(std::string key, std::string meaning, std::string absent,
                                       std::vector<FileKey> changes) {
  FileKey result{.key = std::move(key), .meaning = std::move(meaning), .absent = std::move(absent)};
  std::vector<FileKey> keys{named_key()};
  append(keys, std::move(changes));
  result.values = {FileValue{}, map_of(std::move(keys))};
  return result;
}

[[nodiscard]] FileKey model_key() {
  std::vector<FileKey> sizes;
  for (const std::string_view size : changeable_sizes()) {
    FileKey& key =
        sizes.emplace_back(FileKey{.key = std::string(size), .meaning = "another size", .absent = "the model's"});
    key.values = {{.kind = ValueKind::whole, .bounds = between(1, kLargestModelField)}};
  }
  FileKey model = named_or_changed("model",
                                   "or a map: `{name: llama-3-8b, num_key_value_heads: 4}` changes fields of "
                                   "its shape",
                                   "", std::move(sizes));
  model.is_required = true;
  return model;
}

[[nodiscard]] FileKey machines_key() {
  FileKey machines{.key = "machines", .meaning = "several of them", .absent = "`machine`"};
  FileValue& list = machines.values.emplace_back(FileValue{.kind = ValueKind::list});
  list.items = {FileValue{}};
  return machines;
}

// Every key of `keys`, dotted, as a regular expression.
void add_dotted(const std::vector<FileKey>& keys, const std::string& before, std::vector<std::string>& dotted) {
  for (const FileKey& key : keys) {
    // A pattern begins with ^ and ends with $.
    const std::string own = key.pattern.empty() ? key.key : key.pattern.substr(1, key.pattern.size() - 2);
    dotted.push_back(before + own);
    for (const FileValue& value : key.values) add_dotted(value.keys, before + own + "\\.", dotted);
  }
}

// A map whose keys are dotted keys of the scenario.
[[nodiscard]] FileKey settings_key(const std::vector<FileKey>& keys, std::vector<FileValue> values) {
  std::vector<FileKey> settable;
  std::ranges::copy_if(keys, std::back_inserter(settable),
                       [](const FileKey& key) { return std::ranges::find(kNotSwept, key.key) == kNotSwept.end(); });
  std::vector<std::string> dotted;
  add_dotted(settable, "", dotted);
  std::string any;
  for (const std::string& each : dotted) any.append(any.empty() ? "" : "|").append(each);
  FileKey key{.key = "<key>", .pattern = "^(" + any + ")$"};
  key.meaning = "any key above, dotted";
  key.values = std::move(values);
  return map_key("settings", "", {std::move(key)});
}

[[nodiscard]] FileKey constraints_key() {
  FileKey constraints{.key = "constraints", .meaning = "which points count in a search", .absent = "all points"};
  FileValue& list = constraints.values.emplace_back(FileValue{.kind = ValueKind::list});
  list.items = {FileValue{}};
  return constraints;
}

}  // namespace

FileTree scenario_tree() {
  std::vector<FileKey> keys = plain_scenario_keys();
  keys.push_back(model_key());
  keys.push_back(named_or_changed("machine", "a name, a file or `host`; or a map with changed figures", "`machines`",
                                  machine_changes()));
  keys.push_back(machines_key());
  keys.push_back(named_or_changed("stack", "whose kernels run: a name under `stacks/`, a program (`vllm`) or a file",
                                  "`dculab`", stack_changes()));
  keys.push_back(
      weights_key("a dtype, `gptq-int4` (2, 3, 4 or 8 bits, groups of 128), or with groups of 32: "
                  "`gptq-int4-g32`"));
  append(keys, engine_section_keys());
  keys.push_back(map_key("deployment", "how several devices share the work", deployment_keys()));
  keys.push_back(map_key("workload", "a step, or requests to serve", workload_keys()));
  keys.push_back(map_key("slo", "what users are promised", slo_keys()));
  keys.push_back(map_key("measure", "how `--measure` runs the sweep on this machine", measure_keys()));
  keys.push_back(map_key("objective", "the best point of a search, or of `simulate`", objective_keys()));
  keys.push_back(map_key("pareto", "the Pareto front of a search, or of `simulate`", pareto_keys()));
  keys.push_back(constraints_key());
  keys.push_back(map_key("accuracy", "what fewer KV heads cost in accuracy", accuracy_keys()));
  const FileValue scalar_list{.kind = ValueKind::list,
                              .items = {any_scalar(), map_of({many_keys("<key>", ".", any_scalar())})}};
  FileKey sweep = settings_key(keys, {scalar_list, map_of(axis_keys())});
  sweep.key = "sweep";
  sweep.meaning = "axes: the values of dotted keys; the first axis is the slowest";
  keys.push_back(std::move(sweep));
  keys.push_back(map_key("compare", "variants of the scenario beside the scenario itself",
                         compare_keys(settings_key(keys, {any_scalar()}))));
  FileValue document = map_of(std::move(keys));
  document.one_of = {"machine", "machines"};
  return {std::string(kScenarioSchema), "one question", {std::move(document)}};
}

std::vector<std::string> scenario_keys_named(std::string_view key) {
  std::vector<std::string> dotted;
  const FileTree tree = scenario_tree();
  for (const FileKey& section : tree.documents.front().keys)
    for (const FileValue& value : section.values)
      for (const FileKey& each : value.keys)
        if (same_word(each.key, key) && !is_setting(section.key)) dotted.push_back(section.key + "." + each.key);
  return dotted;
}

}  // namespace dculab::config
