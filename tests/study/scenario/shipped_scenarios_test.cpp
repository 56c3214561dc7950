// The shipped scenarios, none of which is run here: each is read, and what its points name is there and goes together.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "core/error.hpp"
#include "study/decide/draft_study.hpp"
#include "study/measure/measured_drafts.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/request_workload.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/server.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostPoints = 2000;  // of a larger sweep the scenario itself is looked at

// In all folders but those of models and of stacks.
std::vector<fs::path> shipped_scenarios() {
  std::vector<fs::path> files;
  const fs::path root = DCULAB_SOURCE_DIR "/scenarios";
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::recursive_directory_iterator(); ++entry) {
    const std::string name = entry->path().filename().string();
    if (entry->is_directory() && (name == "models" || name == "stacks")) entry.disable_recursion_pending();
    if (entry->path().extension() == ".yaml") files.push_back(entry->path());
  }
  std::ranges::sort(files);
  return files;
}

// `host` is whatever machine somebody sits at.
std::vector<std::string> machines_of(const config::Scenario& scenario) {
  std::vector<std::string> machines = scenario.machines;
  std::ranges::replace(machines, std::string("host"), std::string("x86-server"));
  return machines;
}

// How a study of the scenario begins, at any of its points and variants.
enum class Question { drafts, requests, steps };

Question question_of(const config::Scenario& scenario) {
  if (is_draft_study(scenario)) return Question::drafts;
  const bool is_served = scenario.workload.kind == config::WorkloadKind::serving;
  return is_served && !scenario.compare && !scenario.accuracy ? Question::requests : Question::steps;
}

void check_point(const config::Scenario& scenario, Question question) {
  for (const std::string& name : machines_of(scenario)) {
    const sim::Machine machine = resolve_machine(scenario, name);
    const ModelShape model = resolve_model(scenario);
    if (question == Question::drafts) {
      CHECK(draft_point({{}, scenario}, machine).batch >= 1);
    } else if (question == Question::requests) {
      CHECK(resolve_server(scenario, machine).model == model);
    } else {
      const EngineOptions options = resolve_options(scenario, model, machine);
      if (scenario.workload.kind == config::WorkloadKind::step)
        CHECK_FALSE(resolve_batch(scenario.workload, model, options).sequences.empty());
    }
  }
}

void check_scenario(const config::Scenario& scenario) {
  const Question question = question_of(scenario);
  const bool is_large = config::num_points(scenario.sweep) > kMostPoints;
  const std::vector<config::SweepPoint> points =
      is_large ? std::vector<config::SweepPoint>{{{}, scenario}} : config::sweep_points(scenario);
  for (const config::SweepPoint& point : points) {
    check_point(point.scenario, question);
    if (!scenario.compare) continue;
    for (const config::Variant& variant : scenario.compare->variants) {
      INFO(variant.name);
      check_point(config::with_changes(point.scenario, variant), question);
    }
  }
  if (scenario.workload.kind == config::WorkloadKind::serving)
    CHECK(resolve_requests(scenario, resolve_model(scenario)).requests > 0);
}

TEST_CASE("every shipped scenario is read, and what its points name is there and goes together", "[once]") {
  const std::vector<fs::path> files = shipped_scenarios();
  for (const char* folder : {"measured", "papers", "search", "serving", "tutorial"})
    CHECK(
        std::ranges::any_of(files, [folder](const fs::path& file) { return file.parent_path().filename() == folder; }));
  for (const fs::path& file : files) {
    INFO(file.string());
    try {
      const config::Scenario scenario = config::read_scenario_file(file.string());
      CHECK(scenario.question.ends_with('?'));
      check_scenario(scenario);
      for (const std::string& next : scenario.then) CHECK(fs::exists(file.parent_path() / next));
    } catch (const InputError& error) {
      FAIL_CHECK(error.what());
    }
  }
}

TEST_CASE("drafts of the shipped scenario that is measured can be run") {
  const config::Scenario scenario = config::read_scenario_file(find_scenario("speculation").string());
  CHECK(measurable_drafts(scenario, resolve_machine("x86-server")).size() == config::num_points(scenario.sweep));
}

}  // namespace
}  // namespace dculab::study
