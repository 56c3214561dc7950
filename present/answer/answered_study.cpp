#include "present/answer/answered_study.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "present/study/study_report.hpp"
#include "study/answer/study_answer.hpp"
#include "study/answer/study_question.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/refuse.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/serving_scenario.hpp"
#include "study/scenario/speculation.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::present {
namespace {

constexpr const char* kHost = "host";

// The names of the scenario's machines; `host` is the file that was probed before.
[[nodiscard]] std::vector<std::string> names_of(const config::Scenario& scenario, const StudyQuestion& question) {
  if (std::ranges::find(scenario.machines, kHost) != scenario.machines.end() && question.host_file.empty())
    throw InputError(scenario.file, "machine: host is this machine, which has no file; add --measure, or " +
                                        std::string("--host FILE with what `dculab probe --machine-file` wrote"));
  std::vector<std::string> names = scenario.machines;
  std::ranges::replace(names, std::string(kHost), question.host_file);
  return names;
}

// What does not go with a scenario of its kind.
void refuse_unfit(const config::Scenario& scenario, const StudyQuestion& question) {
  const bool measures = question.measure != nullptr, is_sensitive = question.search.sensitivity;
  if (!scenario.choose.empty() && (measures || is_sensitive))
    throw InputError(scenario.file, "choose: designs are predicted; leave --measure and --sensitivity out");
  if (study::drafts(scenario) && is_sensitive)
    throw InputError(scenario.file, "engine.speculative_config: a study of drafts has no --sensitivity; leave it out");
  if (measures && (scenario.compare || study::drafts(scenario)) && !study::is_served(scenario))
    study::require_one_device(scenario, scenario.compare ? "a measured comparison" : "a measured study of drafts");
  if (measures && study::kind_of(scenario) == study::StudyKind::search)
    throw InputError(scenario.file, "a search is predicted; leave --measure out, or objective, pareto and constraints");
}

// An option that would change nothing is refused: somebody waits for what it should do.
void refuse_ignored(const config::Scenario& scenario, const StudyQuestion& question) {
  refuse_unfit(scenario, question);
  const bool is_search = study::kind_of(scenario) == study::StudyKind::search;
  const std::string option = study::search_option(question.search), files = study::files_option(question.search);
  if (!option.empty() && !is_search)
    throw InputError(option, "is of a search, which " + scenario.file +
                                 " is not: it has compare or accuracy, or neither objective, pareto nor constraints");
  if (question.search.sensitivity && (question.measure != nullptr || scenario.compare || scenario.accuracy))
    throw InputError("--sensitivity", "is of a predicted recommendation or search, which this study of " +
                                          scenario.file + " is not; leave it out");
  if (!files.empty() && !scenario.then.empty())
    throw InputError(files, "is of one search, and " + scenario.file +
                                " names others under `then`; take `then` out and study each with files of its own");
}

void predict(const config::Scenario& scenario, const StudyQuestion& question, const SearchEvents& events,
             Report& report) {
  const study::StudyKind kind = study::kind_of(scenario);
  if (kind == study::StudyKind::search) return search_study(scenario, question.search, events, report);
  // Elsewhere than in a search, or for designs, every point is priced on the machines that the scenario lists.
  const bool designs = kind == study::StudyKind::designs;
  if (!designs)
    study::refuse_machine_axes(scenario,
                               "belongs to a search; with compare or accuracy list machines under `machines`, or " +
                                   std::string("give one figure with --set"));
  const std::vector<std::string> machines = designs ? scenario.machines : names_of(scenario, question);
  const double within = question.search.sensitivity ? question.search.within : 0;
  add_study_answer(scenario, study::answer_study(scenario, machines, within), report);
}

// A load without a scenario file is judged by its throughput unless the question says by what.
[[nodiscard]] study::LoadQuestion load_of(const std::string& file, const StudyQuestion& question) {
  study::LoadQuestion load = question.load;
  const auto judges = [](const std::string& change) {
    return change.starts_with("objective") || change.starts_with("pareto");
  };
  if (file.empty() && std::ranges::none_of(load.set, judges))
    load.set.emplace_back("objective={maximize: output_tokens_per_second}");
  return load;
}

// Read and checked, before the work.
[[nodiscard]] config::Scenario read_question(const std::string& file, const StudyQuestion& question) {
  config::Scenario scenario = study::read_with(file, load_of(file, question));
  refuse_ignored(scenario, question);
  if (question.measure && study::is_served(scenario))
    scenario = study::read_serving_scenario(file, load_of(file, question));
  else
    study::refuse_unanswered(scenario);
  return scenario;
}

[[nodiscard]] Report answered(const std::string& file, const StudyQuestion& question, const SearchEvents& events) {
  const config::Scenario scenario = read_question(file, question);
  const std::vector<config::Scenario> followers = study::read_followers(scenario);
  ask_before_long_search(scenario, question.search, events);  // all of them, before the work
  for (const config::Scenario& next : followers) ask_before_long_search(next, question.search, events);
  Report report = study_report(scenario);
  if (!question.measure)
    for (std::string& line : study::whose_kernels(scenario)) report.heading.push_back(std::move(line));
  add_warnings(report, study::model_notes(scenario));
  if (question.measure && scenario.accuracy)
    throw InputError(scenario.file, "accuracy: is measured already, and speed is predicted; leave --measure out");
  if (question.measure)
    question.measure(scenario, report);
  else
    predict(scenario, question, events, report);
  if (!question.measure) conclude_stacks(scenario, report);
  for (const config::Scenario& next : followers) {
    Report part{"", {}, {}, Json::object()};
    predict(next, question, events, part);
    add_follower(next, study::model_notes(next), std::move(part), report);
  }
  return report;
}

}  // namespace

Report answered_study(const StudyQuestion& question, const SearchEvents& events) {
  const bool is_one = question.scenarios.size() == 1;
  if (question.measure && !is_one) throw InputError("--measure runs one scenario at a time; give one");
  if (const std::string files = study::files_option(question.search); !is_one && !files.empty())
    throw InputError(files, "is of one scenario; give one");
  if (is_one) return answered(question.scenarios.front(), question, events);
  for (const std::string& file : question.scenarios)
    static_cast<void>(study::read_with(file, load_of(file, question)));  // before the work
  Report all = studies_report();
  for (const std::string& file : question.scenarios) add_study(answered(file, question, events), all);
  return all;
}

}  // namespace dculab::present
