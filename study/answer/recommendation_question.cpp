#include "study/answer/recommendation_question.hpp"

#include <algorithm>

#include "config/scenario_document.hpp"
#include "config/trace_file.hpp"
#include "core/error.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/refuse.hpp"
#include "study/scenario/serving_scenario.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] Node document_of(const RecommendChoices& choices) {
  Node document = study::document_of(choices.scenario, choices);
  if (choices.scenario.empty())
    config::set_override(document, {"question", "Which sizes and limits should the engine have?"});
  if (choices.block_size > 0)
    config::set_override(document, {"kv_cache.block_size", std::to_string(choices.block_size)});
  return document;
}

[[nodiscard]] FleetOffer offer_of(const RecommendChoices& choices, const config::Scenario& scenario) {
  const Node* const given = config::find_key(scenario.document, "deployment");
  const auto is_chosen = [&choices](const Node& key) {
    return choices.decode_machine.empty() || (key.key != "kv_transfer" && key.key != "routing");
  };
  if (given != nullptr && (given->children.empty() || std::ranges::any_of(given->children, is_chosen)))
    refuse_deployment(scenario,
                      {choices.decode_machine.empty()
                           ? "--devices has it chosen; leave one of the two out"
                           : "--devices has all of it chosen but kv_transfer and routing; leave the rest out"});
  if (scenario.options.speculative_config.enabled())
    throw InputError("--devices", "layouts are compared without drafts; leave engine.speculative_config out");
  return {.devices = choices.devices, .servers = choices.servers > 0 ? std::optional(choices.servers) : std::nullopt};
}

}  // namespace

RecommendationQuestion recommendation_question(const RecommendChoices& choices) {
  RecommendationQuestion question;
  const std::string file = choices.scenario.empty() ? kCommandLine : find_scenario(choices.scenario).string();
  question.scenario = config::read_scenario(file, document_of(choices));
  refuse_unrecommended(question.scenario);
  question.any_kv_heads = choices.any_kv_heads;
  question.count_requests = choices.scenario.empty() && choices.dataset_path.empty() && choices.requests == 0;
  if (choices.block_size > 0) question.block_size = choices.block_size;
  if (!choices.kv_cache_dtype.empty()) question.kv_cache_dtype = question.scenario.options.kv_cache_dtype;
  if (choices.concurrency > 0) question.sequences = choices.concurrency;
  if (choices.devices > 0) question.offer = offer_of(choices, question.scenario);
  if (choices.servers > 0 && choices.devices == 0)
    throw InputError("--servers",
                     "says how many servers there are at most; say with --devices how many devices each has");
  question.decode_machine = choices.decode_machine;
  if (!choices.trace_file.empty()) question.trace = config::read_trace_file(choices.trace_file);
  if (choices.any_kv_heads && question.scenario.accuracy)
    throw InputError("--any-kv-heads", "the scenario's accuracy says which numbers of KV heads will do; leave one out");
  return question;
}

std::vector<Recommendation> recommend_serving(const RecommendationQuestion& question) {
  std::vector<Recommendation> found;
  for (const std::string& machine : question.scenario.machines) found.push_back(recommend_serving(question, machine));
  return found;
}

std::vector<DisaggregatedRecommendation> recommend_disaggregated(const RecommendationQuestion& question) {
  std::vector<DisaggregatedRecommendation> found;
  for (const std::string& machine : question.scenario.machines)
    found.push_back(recommend_disaggregated(question, machine));
  return found;
}

}  // namespace dculab::study
