#include "study/scenario/speculation.hpp"

#include <filesystem>

#include "config/scenario_document.hpp"
#include "config/trace_file.hpp"
#include "core/error.hpp"
#include "model/folder/model_config.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/refuse.hpp"

namespace dculab::study {
namespace {

constexpr const char* kKey = "engine.speculative_config";

[[nodiscard]] std::string find_trace(const config::Scenario& scenario) {
  const std::string& file = scenario.speculation.trace;
  const std::filesystem::path beside = std::filesystem::path(scenario.file).parent_path() / file;
  std::error_code ignored;
  return std::filesystem::exists(beside, ignored) ? beside.string() : file;
}

[[nodiscard]] sim::Acceptance acceptance_of_trace(const config::Scenario& scenario) {
  DraftCounts counts;
  for (const TraceStep& step : config::read_trace_file(find_trace(scenario)).steps) counts += step.drafts;
  if (counts.num_drafts == 0)
    refuse_key(scenario, std::string(kKey) + ".acceptance",
               {"no step of " + scenario.speculation.trace + " had drafts: its run speculated with nothing"});
  return sim::acceptance_of(counts);
}

}  // namespace

bool drafts(const config::Scenario& scenario) { return config::find_key(scenario.document, kKey) != nullptr; }

std::optional<sim::Speculation> resolve_speculation(const config::Scenario& scenario) {
  if (!scenario.options.speculative_config.enabled()) return std::nullopt;
  const config::SpeculationChoice& choice = scenario.speculation;
  sim::Speculation speculation;
  speculation.acceptance = choice.trace.empty() ? choice.acceptance : acceptance_of_trace(scenario);
  if (choice.model.empty()) return speculation;
  speculation.draft = read_model_shape(find_model(choice.model));
  if (choice.weights) speculation.draft->expert_quantization.reset();
  speculation.draft_weights = choice.weights.value_or(speculation.draft->layer_format());
  return speculation;
}

void require_drafts(const config::Scenario& scenario, const std::optional<sim::Speculation>& speculation,
                    const ModelShape& model, const EngineOptions& options, const sim::Machine& machine) {
  refuse_key(scenario, kKey, problems(speculation, model, options, scenario.deployment, machine));
}

void refuse_drafts(const config::Scenario& scenario, const std::string& what) {
  if (drafts(scenario)) refuse_key(scenario, kKey, {what + " weighs steps without drafts; leave it out"});
}

}  // namespace dculab::study
