#include "config/scenario_reader.hpp"

#include <algorithm>
#include <array>

#include "config/deployment_reader.hpp"
#include "config/key_description.hpp"
#include "config/key_tree.hpp"
#include "config/model_sizes.hpp"
#include "config/options_reader.hpp"
#include "config/search_reader.hpp"
#include "config/step_words.hpp"
#include "config/weight_format_text.hpp"
#include "config/workload_reader.hpp"
#include "fields/printable_text.hpp"

namespace dculab::config {
namespace {

// What may be chosen at every point of the other axes.
constexpr std::array<std::string_view, 2> kDecidedKeys{"model.num_key_value_heads", "kv_cache.block_size"};

// The model: a name, or {name: ..., num_key_value_heads: ...}.
void read_model(MapReader& reader, ModelChoice& model) {
  const Node* node = reader.required("model");
  if (node == nullptr) return;
  if (node->kind != NodeKind::map) return reader.read(*node, model.name);
  MapReader fields(node, "model", reader.problems());
  fields.required("name", model.name);
  for (const std::string_view key : changeable_sizes()) {
    int value = 0;
    fields.optional(key, value, between(1, kLargestModelField));
    if (value != 0) model.overrides[std::string(key)] = value;
  }
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

// What keys say that are no sections.
struct PlainChoices {
  std::string question;
  std::vector<std::string> choose, then;
};

// A single word stands for a list of one.
void read_choose(MapReader& reader, const Node& node, PlainChoices& choices) {
  static constexpr auto kDecided =
      std::to_array<Choice<std::string_view>>({{kDecidedKeys[0], kDecidedKeys[0]}, {kDecidedKeys[1], kDecidedKeys[1]}});
  const std::vector<Node> one{node};
  for (const Node& each : node.kind == NodeKind::list ? node.children : one) {
    Node named = each;
    named.key = "choose";
    std::string_view word;
    reader.read_choice(named, word, kDecided);
    choices.choose.emplace_back(word);
  }
}

void read_phases(MapReader& reader, const Node& node, Measure& measure) {
  if (node.kind != NodeKind::list)
    return reader.complain(node, "measure.phases: must be a list such as [prefill, decode]");
  for (const Node& phase : node.children) reader.read_choice(phase, measure.phases.emplace_back(), kPhases);
}

struct MeasureKeys {
  using Target = Measure;
  static constexpr auto keys = std::tuple(
      value("repeats", &Measure::repeats,
            "rounds through the sweep, with `--measure`; for requests, their median counts",
            {.bounds = between(1, kMostRepeats), .unit = "rounds"}),
      value("warm_up", &Measure::warm_up, "untimed steps before each timed one",
            {.bounds = between(0, kMostRepeats), .unit = "steps"}),
      value("held_out", &Measure::held_out, "of the points, that the fit does not see",
            {.bounds = between(0, 1), .unit = unit::share}),
      value("seed", &Measure::seed, "of the split", {.bounds = between(0, 1 << 30)}),
      value("threads", &Measure::threads, "0 = all cores", {.bounds = between(0, kMostThreads), .unit = "threads"}),
      shaped("phases", read_phases, {.words = one_of("prefill", "decode"), .must_be_list = true},
             "refused by `study`: sweep `workload.phase`", {.absent = "the workload's own"}));
};

// Those that are no sections.
struct ScenarioKeys {
  using Target = PlainChoices;
  static constexpr auto keys = std::tuple(
      shaped("schema", read_schema<PlainChoices, kScenarioSchema>, {.words = one_of(kScenarioSchema)},
             "what kind of file this is", {.necessity = Necessity::required}),
      value("question", &PlainChoices::question, "what the study answers; its heading",
            {.necessity = Necessity::required}),
      shaped("choose", read_choose, {.words = one_of(kDecidedKeys[0], kDecidedKeys[1]), .may_be_list = true},
             "recommends values for these at every point of the other axes, with step and interval; no search",
             {.absent = "nothing"}),
      value("then", &PlainChoices::then,
            "scenario files that are studied afterwards, predicted only; beside this file or shipped",
            {.absent = "none"}));
};

// Null where the words are others', or of a format that has them too.
[[nodiscard]] const GgufFormat* gguf_named(const Node* text, const std::optional<WeightFormat>& read) {
  const GgufFormat* gguf = text == nullptr || !read ? nullptr : find_gguf_format(text->text);
  return gguf != nullptr && gguf->format == *read ? gguf : nullptr;
}

[[nodiscard]] PlainChoices read_plain(MapReader& reader, std::initializer_list<std::string_view> keys) {
  PlainChoices choices;
  for (const std::string_view key : keys) read_key<ScenarioKeys>(reader, key, choices);
  return choices;
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
      scenario.question = read_plain(reader, {"schema", "question"}).question;
      return;
    case Section::model:
      return read_model(reader, scenario.model = {});
    case Section::machines:
      return read_machines(reader, scenario);
    case Section::stack:
      return read_stack(reader, scenario);
    case Section::weights:
      read_weights(reader, scenario.weights = {});
      scenario.gguf = gguf_named(reader.optional("weights"), scenario.weights);
      return;
    case Section::options:
      return read_engine_sections(reader, scenario.options = {}, scenario.speculation = {}, scenario.few_heads = {});
    case Section::deployment:
      return read_deployment(reader.optional_map("deployment"), scenario.deployment = {}, scenario.decode_machine = {});
    case Section::workload:
      return read_workload(reader.optional_map("workload"), scenario.workload = {});
    case Section::slo:
      return read_slo(reader.optional_map("slo"), scenario.slo = {});
    case Section::measure:
      return read_section<MeasureKeys>(reader.optional_map("measure"), scenario.measure = {});
    case Section::objective:
      return read_objective(reader.optional_map("objective"), scenario.objective = {});
    case Section::pareto:
      return read_pareto(reader.optional_map("pareto"), scenario.pareto = {});
    case Section::then:
      scenario.then = read_plain(reader, {"then"}).then;
      return;
    case Section::choose:
      scenario.choose = read_plain(reader, {"choose"}).choose;
      return;
  }
}

}  // namespace

std::vector<FileKey> plain_scenario_keys() { return keys_of<ScenarioKeys>(); }

std::vector<FileKey> measure_keys() { return keys_of<MeasureKeys>(); }

std::vector<std::string_view> changeable_sizes() {
  std::vector<std::string_view> names{kLayersField};
  const auto add = [&names](const std::vector<std::string_view>& more) {
    for (const std::string_view name : more)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  add(names_of<ModelSizes>());
  add({"intermediate_size"});
  add(names_of<AttentionSizes<Gqa>>());
  add(names_of<MixtureSizes>());
  add(names_of<AttentionSizes<Mla>>());
  return names;
}

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
  reader.finish(scenario_keys_named);
}

}  // namespace dculab::config
