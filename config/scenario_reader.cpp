#include "config/scenario_reader.hpp"

#include <algorithm>
#include <array>

#include "config/deployment_reader.hpp"
#include "config/model_fields.hpp"
#include "config/options_reader.hpp"
#include "config/search_reader.hpp"
#include "config/step_words.hpp"
#include "config/weight_format_text.hpp"
#include "config/workload_reader.hpp"
#include "fields/printable_text.hpp"

namespace dculab::config {
namespace {

void read_heading(MapReader& reader, Scenario& scenario) {
  static constexpr auto kSchemas = std::to_array<Choice<std::string_view>>({{kScenarioSchema, kScenarioSchema}});
  std::string_view schema;
  reader.required("schema", schema, kSchemas);
  reader.required("question", scenario.question);
}

// The model: a name, or {name: ..., num_key_value_heads: ...}.
void read_model(MapReader& reader, ModelChoice& model) {
  const Node* node = reader.required("model");
  if (node == nullptr) return;
  if (node->kind != NodeKind::map) return reader.read(*node, model.name);
  MapReader fields(node, "model", reader.problems());
  fields.required("name", model.name);
  const auto read_size = [&](std::string_view key, int value) {
    fields.optional(key, value, between(1, kLargestModelField));
    if (value != 0) model.overrides[std::string(key)] = value;
  };
  const ModelShape none;  // sizes of 0
  read_size(kLayersField, 0);
  visit_model_sizes(none, read_size);
  visit_layer_sizes(none.kinds.front(), read_size);
  const Experts no_experts;
  visit_mixture_sizes(no_experts, read_size);
  for (const char* key : {"kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"}) read_size(key, 0);
  fields.finish();
}

// All keys but the name.
void read_figures(MapReader& fields, const Node& node, std::vector<Node>& figures) {
  for (const Node& child : node.children) {
    if (child.key == "name") continue;
    if (fields.optional(child.key) == &child) figures.push_back(child);
    if (child.kind != NodeKind::scalar)
      fields.complain(child, fields.path_to(child.key) + ": must be a figure with its unit");
  }
  fields.finish();
}

// {name: z100, memory.DRAM.bandwidth: 2 TB/s}; beside a list of machines without the name.
void read_machine_map(MapReader& reader, const Node& node, const Node* many, Scenario& scenario) {
  MapReader fields(&node, "machine", reader.problems());
  if (many == nullptr) fields.required("name", scenario.machines.emplace_back());
  read_figures(fields, node, scenario.machine_figures);
}

// A name, or {name: vllm, reached.matmul_compute: 0.7}; without a name our own.
void read_stack(MapReader& reader, Scenario& scenario) {
  scenario.stack = Scenario().stack;
  scenario.stack_figures.clear();
  const Node* node = reader.optional("stack");
  if (node == nullptr) return;
  if (node->kind != NodeKind::map) return reader.read(*node, scenario.stack);
  MapReader fields(node, "stack", reader.problems());
  fields.optional("name", scenario.stack);
  read_figures(fields, *node, scenario.stack_figures);
}

void read_machines(MapReader& reader, Scenario& scenario) {
  scenario.machines.clear();
  scenario.machine_figures.clear();
  const Node* one = reader.optional("machine");
  const Node* many = reader.optional("machines");
  const bool changes = one != nullptr && one->kind == NodeKind::map;
  if (one != nullptr && many != nullptr && (!changes || one->find("name") != nullptr))
    reader.complain(*many, "machines: machine stands there too; keep one of them");
  if (one == nullptr && many == nullptr && reader.is_present())
    reader.complain(*reader.node(), "machine: missing; add it, or a list of machines");
  if (changes)
    read_machine_map(reader, *one, many, scenario);
  else if (one != nullptr)
    reader.read(*one, scenario.machines.emplace_back());
  if (many != nullptr && (one == nullptr || changes)) reader.read(*many, scenario.machines);
}

// A single word stands for a list of one.
void read_choose(MapReader& reader, std::vector<std::string>& choose) {
  static constexpr auto kDecided = std::to_array<Choice<std::string_view>>(
      {{"model.num_key_value_heads", "model.num_key_value_heads"}, {"kv_cache.block_size", "kv_cache.block_size"}});
  const Node* node = reader.optional("choose");
  if (node == nullptr) return;
  const std::vector<Node> one{*node};
  for (const Node& each : node->kind == NodeKind::list ? node->children : one) {
    Node named = each;
    named.key = "choose";
    std::string_view word;
    reader.read_choice(named, word, kDecided);
    choose.emplace_back(word);
  }
}

void read_measure(MapReader reader, Measure& measure) {
  reader.optional("repeats", measure.repeats, between(1, kMostRepeats));
  reader.optional("warm_up", measure.warm_up, between(0, kMostRepeats));
  reader.optional("held_out", measure.held_out, between(0, 1));
  reader.optional("seed", measure.seed, between(0, 1 << 30));
  reader.optional("threads", measure.threads, between(0, kMostThreads));
  const Node* phases = reader.optional("phases");
  if (phases != nullptr && phases->kind != NodeKind::list)
    reader.complain(*phases, "measure.phases: must be a list such as [prefill, decode]");
  if (phases != nullptr && phases->kind == NodeKind::list)
    for (const Node& phase : phases->children) reader.read_choice(phase, measure.phases.emplace_back(), kPhases);
  reader.finish();
}

constexpr auto kKeys = std::to_array<std::pair<std::string_view, Section>>({{"schema", Section::heading},
                                                                            {"question", Section::heading},
                                                                            {"model", Section::model},
                                                                            {"machine", Section::machines},
                                                                            {"machines", Section::machines},
                                                                            {"stack", Section::stack},
                                                                            {"weights", Section::weights},
                                                                            {"activations", Section::options},
                                                                            {"kv_cache", Section::options},
                                                                            {"attention", Section::options},
                                                                            {"experts", Section::options},
                                                                            {"engine", Section::options},
                                                                            {"deployment", Section::deployment},
                                                                            {"workload", Section::workload},
                                                                            {"slo", Section::slo},
                                                                            {"measure", Section::measure},
                                                                            {"objective", Section::objective},
                                                                            {"pareto", Section::pareto},
                                                                            {"then", Section::then},
                                                                            {"choose", Section::choose}});

// What the section says now, in the place of what was read before.
void read_section(Section section, MapReader& reader, Scenario& scenario) {
  switch (section) {
    case Section::heading:
      return read_heading(reader, scenario);
    case Section::model:
      return read_model(reader, scenario.model = {});
    case Section::machines:
      return read_machines(reader, scenario);
    case Section::stack:
      return read_stack(reader, scenario);
    case Section::weights:
      return read_weights(reader, scenario.weights = {});
    case Section::options:
      return read_engine_sections(reader, scenario.options = {}, scenario.speculation = {}, scenario.few_heads = {});
    case Section::deployment:
      return read_deployment(reader.optional_map("deployment"), scenario.deployment = {});
    case Section::workload:
      return read_workload(reader.optional_map("workload"), scenario.workload = {});
    case Section::slo:
      return read_slo(reader.optional_map("slo"), scenario.slo = {});
    case Section::measure:
      return read_measure(reader.optional_map("measure"), scenario.measure = {});
    case Section::objective:
      return read_objective(reader.optional_map("objective"), scenario.objective = {});
    case Section::pareto:
      return read_pareto(reader.optional_map("pareto"), scenario.pareto = {});
    case Section::then:
      return reader.optional("then", scenario.then = {});
    case Section::choose:
      return read_choose(reader, scenario.choose = {});
  }
}

}  // namespace

Sections sections_of(std::string_view key) {
  const std::string_view first = key.substr(0, key.find('.'));
  const auto found = std::ranges::find(kKeys, first, &std::pair<std::string_view, Section>::first);
  return found == kKeys.end() ? Sections::all() : Sections{found->second};
}

void read_sections(Scenario& scenario, const Node& document, ProblemList& problems, Sections sections) {
  MapReader reader(&document, "", problems);
  for (int each = 0; each <= static_cast<int>(Section::choose); ++each)
    if (const auto section = static_cast<Section>(each); sections.have({section}))
      read_section(section, reader, scenario);
  if (sections != Sections::all()) return;  // then no other key can have come
  for (const char* other : {"sweep", "compare", "accuracy", "constraints"}) static_cast<void>(reader.optional(other));
  reader.finish();
}

}  // namespace dculab::config
