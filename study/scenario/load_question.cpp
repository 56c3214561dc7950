#include "study/scenario/load_question.hpp"

#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/request_workload.hpp"

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

void add_load(const LoadQuestion& question, std::vector<config::Override>& changes) {
  const auto set = [&changes](const char* key, const std::string& value) {
    if (!value.empty()) changes.emplace_back(key, value);
  };
  const auto count = [](int value) { return value == 0 ? std::string() : std::to_string(value); };
  set("workload.file", question.dataset_path);
  set("workload.requests", count(question.requests));
  set("workload.prompt_tokens", count(question.prompt_tokens));
  set("workload.output_tokens", count(question.output_tokens));
  if (!question.requests_per_second.empty())
    set("workload.arrival", "poisson");
  else if (!question.dataset_path.empty() && !holds_conversations(question.dataset_path))
    set("workload.arrival", "replay");
  set("workload.requests_per_second", question.requests_per_second);
  set("slo.ttft", question.ttft);
  set("slo.tpot", question.tpot);
}

}  // namespace

bool is_given(const LoadQuestion& question) {
  return !question.machines.empty() || question.requests + question.prompt_tokens + question.output_tokens > 0 ||
         !(question.model + question.weights + question.kv_cache_dtype + question.ttft + question.tpot +
           question.requests_per_second + question.dataset_path)
              .empty();
}

std::vector<config::Override> changes_of(const LoadQuestion& question) {
  std::vector<config::Override> changes;
  if (!question.model.empty()) changes.emplace_back("model", question.model);
  if (question.machines.size() == 1) changes.emplace_back("machine", question.machines.front());
  if (question.machines.size() > 1) changes.emplace_back("machines", list_of(question.machines));
  if (!question.weights.empty()) changes.emplace_back("weights", question.weights);
  add_load(question, changes);
  if (!question.kv_cache_dtype.empty()) changes.emplace_back("kv_cache.dtype", question.kv_cache_dtype);
  for (const std::string& change : question.set) changes.push_back(config::parse_override(change));
  if (!question.stack.empty()) changes.emplace_back("stack", question.stack);
  return changes;
}

Node document_of(const std::string& scenario, const LoadQuestion& question) {
  if (scenario.empty() && (question.model.empty() || question.machines.empty()))
    throw InputError(kCommandLine, "needs --model and --machine, or a scenario file");
  Node document = !scenario.empty()
                      ? config::read_yaml_file(find_scenario(scenario).string())
                      : config::parse_yaml(kCommandLine, question.dataset_path.empty() ? kQuestion : kRecordedQuestion);
  for (const config::Override& change : changes_of(question)) config::set_override(document, change);
  return document;
}

}  // namespace dculab::study
