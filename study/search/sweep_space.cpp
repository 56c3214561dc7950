#include "study/search/sweep_space.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "config/machine_figure.hpp"
#include "config/machine_file.hpp"
#include "config/scenario_document.hpp"
#include "core/fingerprint.hpp"
#include "fields/json_text.hpp"
#include "files/input.hpp"
#include "model/folder/model_config.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/request_workload.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/server.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::study {
namespace {

using config::Section;

constexpr const char* kMachineKey = "machine";
constexpr std::uint64_t kUnset = ~std::uint64_t{0};  // position of an axis

void refuse_axis(const config::Scenario& scenario, const config::SweepAxis& axis) {
  const std::string section = axis.key.substr(0, axis.key.find('.'));
  if (axis.key == "workload.file")
    throw InputError(scenario.file, "sweep.workload.file: a search takes one file; `dculab simulate` sweeps files");
  if ((section == axis.key || axis.key.ends_with(".name")) && (section == "model" || section == kMachineKey) &&
      axis.values.empty())
    throw InputError(scenario.file, "sweep." + axis.key + ": needs names");
}

// The names that a key has at any point.
[[nodiscard]] std::vector<std::string> names_of(const config::Scenario& scenario, const std::string& key,
                                                std::vector<std::string> otherwise) {
  for (const config::SweepAxis& axis : scenario.sweep)
    if (axis.key == key || axis.key == key + ".name") return axis.values;
  return otherwise;
}

[[nodiscard]] std::uint64_t fingerprint_of(const std::filesystem::path& file, std::uint64_t start) {
  return fingerprint(files::read_text(file.string(), files::kLargestText), start);
}

// One machine in the place of several, with the figures that the scenario changes.
void set_first_machine(config::Scenario& scenario) {
  Node& document = scenario.document;
  Node name = config::axis_node(scenario.file, kMachineKey, scenario.machines.front());
  config::set_key(document, document.find(kMachineKey) == nullptr ? kMachineKey : "machine.name", std::move(name));
  config::erase_key(document, "machines");
}

// The base document of the points.
[[nodiscard]] Node base_document(const config::Scenario& scenario) {
  Node document = scenario.document;
  for (const char* other : {"sweep", "compare", "accuracy", "constraints", "objective", "pareto", "then"})
    config::erase_key(document, other);
  return document;
}

// The requests' file is looked for beside the scenario, and a journal lies elsewhere.
[[nodiscard]] config::Scenario with_absolute_file(config::Scenario scenario) {
  if (scenario.workload.file.empty()) return scenario;
  scenario.workload.file = std::filesystem::absolute(find_requests_file(scenario)).lexically_normal().string();
  config::set_key(scenario.document, "workload.file",
                  config::axis_node(scenario.file, "workload.file", scenario.workload.file));
  return scenario;
}

void refuse_metric(const config::Scenario& scenario, const std::string& key, const std::string& metric) {
  const auto metrics = search_metrics(scenario.workload.kind);
  if (metric_index(metrics, metric) < metrics.size()) return;
  const bool served = scenario.workload.kind == config::WorkloadKind::serving;
  std::string known;
  for (const std::string_view each : metrics) known.append(known.empty() ? "" : ", ").append(each);
  throw InputError(scenario.file, key + ": " + metric + " is no metric of " + (served ? "served requests" : "a step") +
                                      "; use one of " + known +
                                      (served ? "" : ", or serve requests: give workload.requests"));
}

[[nodiscard]] config::Scenario with_known_metrics(config::Scenario scenario) {
  if (scenario.document.find("objective") != nullptr) refuse_metric(scenario, "objective", scenario.objective.metric);
  for (const config::Constraint& each : scenario.objective.subject_to)
    refuse_metric(scenario, "objective.subject_to", each.metric);
  for (const config::Aim& aim : scenario.pareto) refuse_metric(scenario, "pareto", aim.metric);
  for (const config::Condition& condition : scenario.constraints)
    for (const std::string& name : condition.names())
      if (std::ranges::find(config::metrics(), name, &config::Metric::name) != config::metrics().end())
        refuse_metric(scenario, "constraints", name);
  return scenario;
}

// Where no machine states what the question's energy or money follows from, and no axis gives it, no point has it.
void refuse_costs_of_none(const config::Scenario& scenario, const std::map<std::string, sim::Machine>& machines) {
  const auto may_give = [](const config::SweepAxis& axis) {
    const auto has_figures = [](const std::string& value) { return value.find('{') != value.npos; };
    return axis.key.starts_with("machine.") ||
           (axis.key == kMachineKey && std::ranges::any_of(axis.values, has_figures));
  };
  if (std::ranges::any_of(scenario.sweep, may_give)) return;
  std::optional<InputError> refusal;
  for (const auto& [name, machine] : machines) {
    sim::Machine own = machine;
    try {
      apply_figures(scenario, own);
      return refuse_unstated_costs(scenario, own);
    } catch (const InputError& error) {
      if (!refusal) refusal = error;
    }
  }
  if (refusal) throw *refusal;
}

}  // namespace

SweepSpace::SweepSpace(config::Scenario scenario)
    : scenario_(with_absolute_file(with_known_metrics(std::move(scenario)))) {
  if (is_served() && scenario_.document.find("objective") == nullptr)
    scenario_.objective = {config::Goal::maximize, "output_tokens_per_second", {}};
  for (const std::string& name : asked_metrics(scenario_))
    if (metric(name) < metrics().size()) asked_.push_back(metric(name));
  document_ = json_text(scenario_.document);
  for (const config::SweepAxis& axis : scenario_.sweep) refuse_axis(scenario_, axis);
  if (scenario_.machines.size() > 1 && names_of(scenario_, kMachineKey, {}).empty()) {
    scenario_.sweep.insert(scenario_.sweep.begin(), {kMachineKey, scenario_.machines, std::nullopt});
    set_first_machine(scenario_);
  }
  load(names_of(scenario_, kMachineKey, scenario_.machines), names_of(scenario_, "model", {scenario_.model.name}));
}

void SweepSpace::load(const std::vector<std::string>& machines, const std::vector<std::string>& models) {
  Node lasting = scenario_.document;  // wherever the requests' file lies: what it holds counts
  if (!scenario_.workload.file.empty())
    config::set_key(lasting, "workload.file", config::axis_node(scenario_.file, "workload.file", "there"));
  identity_ = fingerprint_of("/proc/self/exe", fingerprint(json_text(lasting)));
  for (const std::string& name : machines) {
    if (name == "host")
      throw InputError(scenario_.file, "machine: host is this machine, which has no file; give one of `dculab probe`");
    const std::filesystem::path file = find_machine(name);
    identity_ = fingerprint_of(file, identity_);
    machines_[name] = config::read_machine_file(file.string());
  }
  refuse_costs_of_none(scenario_, machines_);
  for (const std::string& name : models) {
    const std::filesystem::path folder = find_model(name);
    identity_ = fingerprint_of(folder / "config.json", identity_);
    models_[name] = read_model_shape(folder);
  }
  for (const std::string& name : names_of(scenario_, "stack", {scenario_.stack}))
    for (const std::filesystem::path& file : stack_files_of(config::stack_beside(scenario_.file, name)))
      identity_ = fingerprint_of(file, identity_);
  if (!scenario_.workload.file.empty()) load_requests(models);
}

void SweepSpace::load_requests(const std::vector<std::string>& models) {
  identity_ = fingerprint_of(scenario_.workload.file, identity_);
  for (const std::string& name : models)
    if (const std::filesystem::path tokenizer = find_model(name) / "tokenizer.json"; std::filesystem::exists(tokenizer))
      identity_ = fingerprint_of(tokenizer, identity_);
}

SweepCursor::SweepCursor(const SweepSpace& space) : space_(space), order_(config::setting_order(space.axes())) {
  point_.scenario.file = space.scenario().file;
  point_.scenario.document = base_document(space.scenario());
}

const SweepCase& SweepCursor::at(std::uint64_t point) {
  move_to(point);
  read_scenario();
  refuse_other_kind();
  if (changed_.have({Section::machines, Section::stack})) set_machine();
  if (changed_.have({Section::model, Section::machines, Section::stack, Section::deployment})) set_model();
  if (point_.is_served())
    plan_requests();
  else
    plan_step();
  changed_ = {};
  return point_;
}

// A section as an axis can be anything; figures and the study's identity are of the scenario without its sweep.
void SweepCursor::refuse_other_kind() const {
  if (point_.is_served() != space_.is_served())
    throw InputError(std::string("workload: ") + (point_.is_served() ? "serves requests" : "is a single step") +
                     " there, and without the sweep it " +
                     (space_.is_served() ? "serves requests" : "is a single step"));
  if (point_.scenario.workload.file != space_.scenario().workload.file)
    throw InputError("workload.file: a search takes one file, that of the scenario without its sweep");
}

void SweepCursor::set_model() {
  const config::Scenario& scenario = point_.scenario;
  point_.model = resolve_model(scenario, space_.model(scenario.model.name));
  if (!point_.is_served()) point_.model = resolve_part(scenario, point_.model, point_.machine);
}

void SweepCursor::plan_step() {
  const config::Scenario& scenario = point_.scenario;
  if (changed_.have(
          {Section::model, Section::machines, Section::stack, Section::deployment, Section::weights, Section::options}))
    point_.options = resolve_options(scenario, point_.model, point_.machine);
  point_.plan.batch = resolve_batch(scenario.workload, point_.model, point_.options);
  plan_step_into(point_.plan, point_.model, point_.options);
}

void SweepCursor::plan_requests() {
  const config::Scenario& scenario = point_.scenario;
  sim::SimulatedServer server = describe_server(scenario, point_.model, point_.machine);
  point_.options = std::move(server.options);
  point_.speculation = std::move(server.speculation);
  point_.few_heads = std::move(server.few_heads);
  if (changed_.have({Section::model, Section::workload}))  // counting a file's tokens takes long
    point_.requests = resolve_requests(scenario, point_.model);
  point_.requests.padding.skipped = point_.options.kv_skip.padding;
}

// Sets the keys that differ from the point before. A section that is set takes its keys along, so they are set again,
// also where the section cannot have them and the point before was refused.
void SweepCursor::move_to(std::uint64_t point) {
  config::positions_at(space_.axes(), point, wanted_);
  positions_.resize(wanted_.size(), kUnset);
  for (const std::size_t index : order_) {
    if (positions_[index] == wanted_[index]) continue;
    const config::SweepAxis& axis = space_.axes()[index];
    for (std::size_t other = 0; other < positions_.size(); ++other)
      if (config::is_within(space_.axes()[other].key, axis.key)) positions_[other] = kUnset;
    config::set_key(point_.scenario.document, axis.key,
                    config::axis_node(space_.scenario().file, axis.key, axis.value(wanted_[index])));
    positions_[index] = wanted_[index];
    changed_.add(config::sections_of(axis.key));
  }
}

void SweepCursor::read_scenario() {
  config::ProblemList problems(space_.scenario().file);
  config::read_sections(point_.scenario, point_.scenario.document, problems, changed_);
  problems.throw_if_any();
}

void SweepCursor::set_machine() {
  const config::Scenario& scenario = point_.scenario;
  point_.machine = space_.machine(scenario.machines.front());
  apply_figures(scenario, point_.machine);
  if (scenario.stack != point_.machine.stack.name) {
    auto [known, is_new] = stacks_.try_emplace(scenario.machines.front() + "\n" + scenario.stack);
    if (is_new) known->second = resolve_stack(scenario.stack, point_.machine);
    point_.machine.stack = known->second;
  }
  apply_stack_figures(scenario, point_.machine);
}

}  // namespace dculab::study
