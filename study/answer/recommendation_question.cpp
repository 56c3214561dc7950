#include "study/answer/recommendation_question.hpp"

#include "config/trace_file.hpp"
#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/serving_scenario.hpp"

namespace dculab::study {
namespace {

constexpr const char* kQuestion = R"(schema: dculab/scenario/1
question: Which sizes and limits should the engine have?
workload: {requests: 256, prompt_tokens: 1024, output_tokens: 256}
)";

[[nodiscard]] Node document_of(const RecommendChoices& choices) {
  Node document = choices.scenario.empty() ? config::parse_yaml("command line", kQuestion)
                                           : config::read_yaml_file(find_scenario(choices.scenario).string());
  const auto set = [&document](const char* key, const std::string& value) {
    if (!value.empty()) config::set_override(document, {key, value});
  };
  const auto count = [](int value) { return value == 0 ? std::string() : std::to_string(value); };
  std::string machines;
  for (const std::string& machine : choices.machines) machines += (machines.empty() ? "" : ", ") + machine;
  set("model", choices.model);
  if (choices.machines.size() == 1) set("machine", machines);
  if (choices.machines.size() > 1) set("machines", "[" + machines + "]");
  set("weights", choices.weights);
  set("workload.prompt_tokens", count(choices.prompt_tokens));
  set("workload.output_tokens", count(choices.output_tokens));
  set("slo.ttft", choices.ttft);
  set("slo.tpot", choices.tpot);
  if (!choices.requests_per_second.empty()) set("workload.arrival", "poisson");
  set("workload.requests_per_second", choices.requests_per_second);
  set("kv_cache.dtype", choices.kv_cache_dtype);
  set("kv_cache.block_size", count(choices.block_size));
  for (const std::string& change : choices.set) config::set_override(document, config::parse_override(change));
  set("stack", choices.stack);  // which keeps the figures that --set gave a stack
  return document;
}

}  // namespace

RecommendationQuestion recommendation_question(const RecommendChoices& choices) {
  if (choices.scenario.empty() && (choices.model.empty() || choices.machines.empty()))
    throw InputError("recommend", "needs --model and --machine, or a scenario file");
  RecommendationQuestion question;
  const std::string file = choices.scenario.empty() ? "command line" : find_scenario(choices.scenario).string();
  question.scenario = config::read_scenario(file, document_of(choices));
  refuse_unrecommended(question.scenario);
  question.any_kv_heads = choices.any_kv_heads;
  question.count_requests = choices.scenario.empty();
  if (choices.block_size > 0) question.block_size = choices.block_size;
  if (!choices.kv_cache_dtype.empty()) question.kv_cache_dtype = question.scenario.options.kv_cache_dtype;
  if (choices.concurrency > 0) question.sequences = choices.concurrency;
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

}  // namespace dculab::study
