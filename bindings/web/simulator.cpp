#include "bindings/web/simulator.hpp"

#include <exception>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "config/scenario_file.hpp"
#include "core/dtype.hpp"
#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "fields/json_text.hpp"
#include "present/output/report.hpp"
#include "present/study/predicted_fields.hpp"
#include "present/study/prediction_report.hpp"
#include "present/study/step_report.hpp"
#include "present/study/teaching_tables.hpp"
#include "study/answer/prediction.hpp"
#include "study/answer/study_question.hpp"
#include "study/decide/step_study.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/serving_scenario.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::web {
namespace {

using present::Json;
using present::Report;

constexpr const char* kFile = "question";  // in messages

[[nodiscard]] Node word(std::string_view text) {
  Node node;
  node.kind = NodeKind::scalar;
  node.text = text;
  return node;
}

[[nodiscard]] config::Scenario scenario_of(const Node& question) {
  const Node* given = question.find("scenario");
  if (given == nullptr) throw InputError(kFile, "scenario: missing; add it");
  Node document = as_words(*given);  // readers of scenarios expect YAML
  if (document.find("schema") == nullptr) set_member(document, "schema", word(config::kScenarioSchema));
  if (document.find("question") == nullptr) set_member(document, "question", word("How long does this step take?"));
  return config::read_scenario(kFile, document);
}

// The scenario's first machine. Sliders ask for the same again and again, and reading files takes longer than a step's
// price: what no figure of the scenario changes is kept.
[[nodiscard]] sim::Machine machine_of(const config::Scenario& scenario) {
  static std::map<std::pair<std::string, std::string>, sim::Machine> kept;  // by machine and stack
  const std::string& name = scenario.machines.front();
  if (!scenario.machine_figures.empty() || !scenario.stack_figures.empty())
    return study::resolve_machine(scenario, name);
  const auto key = std::pair(name, scenario.stack);
  const auto found = kept.find(key);
  return found != kept.end() ? found->second : kept.emplace(key, study::resolve_machine(scenario, name)).first->second;
}

[[nodiscard]] Report prediction_of(const config::Scenario& scenario, study::InputSensitivities input_sensitivities) {
  return present::prediction_report(study::predict(scenario, machine_of(scenario), input_sensitivities));
}

[[nodiscard]] Report points_of(const config::Scenario& scenario) {
  study::refuse_unanswered(scenario);
  const sim::Machine machine = machine_of(scenario);
  const study::StepStudy study = study::price_steps(scenario, machine);
  return {"dculab/study/1", {}, {}, Json{{"machines", Json::array({present::json_of(present::ReportedSteps{study})})}}};
}

[[nodiscard]] Report study_of(const config::Scenario& scenario) {
  if (study::kind_of(scenario) != study::StudyKind::steps)
    throw InputError(kFile, "scenario: the page asks for sweeps of steps; `dculab study` answers the others");
  study::refuse_unanswered(scenario);
  study::refuse_machine_axes(scenario, "belongs to a search");
  Report report{"dculab/study/1", {}, {}, Json{{"question", scenario.question}}};
  present::add_warnings(report, study::model_notes(scenario));
  std::vector<study::StepStudy> studies;
  for (const std::string& name : scenario.machines)
    studies.push_back(study::study_steps(scenario, study::resolve_machine(scenario, name), 0));
  present::add_step_studies(studies, report);
  return report;
}

[[nodiscard]] Report footprint_of(const config::Scenario& scenario) {
  const auto heads = scenario.model.overrides.find("num_key_value_heads");
  study::FootprintQuestion question;
  question.model = {.name = scenario.model.name,
                    .kv_heads = heads == scenario.model.overrides.end() ? 0 : heads->second};
  question.request = {.tokens = scenario.workload.context_tokens,
                      .batch = scenario.workload.batch,
                      .kv_cache_dtype = scenario.options.kv_cache_dtype};
  question.weights = scenario.weights;
  return present::footprint_report(question, study::model_footprint(question));
}

[[nodiscard]] Report report_of(const std::string& asked, const Node& question) {
  if (asked == "predict") return prediction_of(scenario_of(question), study::InputSensitivities::found);
  if (asked == "step") return prediction_of(scenario_of(question), study::InputSensitivities::left_out);
  if (asked == "points") return points_of(scenario_of(question));
  if (asked == "study") return study_of(scenario_of(question));
  if (asked == "footprint") return footprint_of(scenario_of(question));
  throw InputError(kFile, "ask: write predict, step, study, points, footprint or names");
}

// What is shipped: models, KV formats, stacks with the block sizes that their kernels take (none: all), and each
// machine with the stacks that are for it.
[[nodiscard]] Json names() {
  const std::vector<sim::Stack> stacks = study::shipped_stacks();
  Json machines = Json::object(), programs = Json::object();
  for (const sim::Stack& stack : stacks)
    programs[stack.name] = {{"block_size", stack.defaults.block_size}, {"block_sizes", stack.limits.block_sizes}};
  for (const std::string& name : study::machine_names()) {
    const sim::Machine machine = study::resolve_machine(name);
    Json& its_stacks = machines[name] = Json::array();
    for (const sim::Stack& stack : stacks)
      if (sim::is_for(stack, machine)) its_stacks.push_back(stack.name);
  }
  Json formats = Json::array();
  for (const KvFormat& format : kKvFormats) formats.push_back(name(format.dtype));
  return {{"models", study::model_names()},
          {"machines", std::move(machines)},
          {"stacks", std::move(programs)},
          {"kv_formats", std::move(formats)}};
}

[[nodiscard]] Json document_of(const std::string& question) {
  const Node asked = parse_json(kFile, 1, question);
  const Node* kind = asked.find("ask");
  if (kind == nullptr || !kind->is(ScalarType::text)) throw InputError(kFile, "ask: missing; add it");
  if (kind->text == "names") return names();
  const Report report = report_of(kind->text, asked);
  Json document{{"schema", report.schema}};
  document.update(report.json);
  return document;
}

}  // namespace

std::string answer(const std::string& question) {
  Json document;
  try {
    document = document_of(question);
  } catch (const std::exception& error) {
    document = {{"error", error.what()}};
  }
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace dculab::web
