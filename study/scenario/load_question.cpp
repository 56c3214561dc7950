#include "study/scenario/load_question.hpp"

#include <utility>

#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/request_workload.hpp"
#include "study/scenario/step_question.hpp"

namespace dculab::study {
namespace {

constexpr const char* kQuestion = R"(schema: dculab/scenario/1
question: How fast are these requests served?
workload: {requests: 256, prompt_tokens: 1024, output_tokens: 256}
)";
constexpr const char* kRecordedQuestion = R"(schema: dculab/scenario/1
question: How fast are these requests served?
workload: {}
)";

[[nodiscard]] std::string list_of(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return "[" + list + "]";
}

// So that a refusal names what was typed: the option, not the key that it stands for.
void set(Node& document, const char* key, const std::string& option, const std::string& value) {
  if (!value.empty()) config::set_override(document, {key, value}, option + " " + value);
}

void set_load(Node& document, const LoadQuestion& question) {
  const auto count = [](int value) { return value == 0 ? std::string() : std::to_string(value); };
  set(document, "workload.file", "--dataset-path", question.dataset_path);
  set(document, "workload.requests", "--requests", count(question.requests));
  set(document, "workload.prompt_tokens", "--prompt-tokens", count(question.prompt_tokens));
  set(document, "workload.output_tokens", "--output-tokens", count(question.output_tokens));
  if (!question.requests_per_second.empty())
    config::set_override(document, {"workload.arrival", "poisson"});
  else if (!question.dataset_path.empty() && !holds_conversations(question.dataset_path))
    config::set_override(document, {"workload.arrival", "replay"});
  set(document, "workload.requests_per_second", "--requests-per-second", question.requests_per_second);
  set(document, "slo.ttft", "--ttft", question.ttft);
  set(document, "slo.tpot", "--tpot", question.tpot);
}

void apply(const LoadQuestion& question, Node& document) {
  set(document, "model", "--model", question.model);
  const bool is_one = question.machines.size() == 1;
  if (!question.machines.empty())
    set(document, is_one ? "machine" : "machines", "--machine",
        is_one ? question.machines.front() : list_of(question.machines));
  set(document, "weights", "--weights", question.weights);
  set_load(document, question);
  set(document, "kv_cache.dtype", "--kv-cache-dtype", kv_cache_dtype_option(question.kv_cache_dtype));
  for (const std::string& change : question.set) config::set_override(document, config::parse_override(change));
  set(document, "stack", "--stack", question.stack);  // which keeps the figures that --set gave a stack
}

}  // namespace

bool is_given(const LoadQuestion& question) {
  return !question.machines.empty() || question.requests + question.prompt_tokens + question.output_tokens > 0 ||
         !(question.model + question.weights + question.kv_cache_dtype + question.ttft + question.tpot +
           question.requests_per_second + question.dataset_path)
              .empty();
}

std::string take_scenario(LoadQuestion& question) {
  std::vector<std::string>& set = question.set;
  if (set.empty() || set.back().find('=') != std::string::npos || !try_find_scenario(set.back())) return {};
  std::string scenario = std::move(set.back());
  set.pop_back();
  return scenario;
}

Node document_of(const std::string& scenario, const LoadQuestion& question) {
  if (scenario.empty() && (question.model.empty() || question.machines.empty())) {
    const bool is_one = question.model.empty() != question.machines.empty();
    const std::string missing = !is_one ? "--model and --machine" : question.model.empty() ? "--model" : "--machine";
    throw InputError(kCommandLine, "needs " + missing + ", or a scenario file; `dculab list` has the shipped ones");
  }
  Node document = !scenario.empty()
                      ? config::read_yaml_file(find_scenario(scenario).string())
                      : config::parse_yaml(kCommandLine, question.dataset_path.empty() ? kQuestion : kRecordedQuestion);
  apply(question, document);
  return document;
}

}  // namespace dculab::study
