#include "study/scenario/request_workload.hpp"

#include <algorithm>
#include <filesystem>

#include "config/request_trace_file.hpp"
#include "core/error.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::study {
namespace {

ConversationCounter conversation_counter = nullptr;

[[nodiscard]] std::vector<RecordedRequest> count_conversations(const config::Scenario& scenario,
                                                               const ModelShape& model, const std::string& file) {
  if (conversation_counter == nullptr)
    throw InputError(scenario.file,
                     "workload.file: conversations are counted by the model's tokenizer, which this program does "
                     "without; give the lengths in a CSV file");
  const std::filesystem::path tokenizer = find_model(scenario.model.name) / "tokenizer.json";
  if (!std::filesystem::exists(tokenizer))
    throw InputError(scenario.file, "workload.file: conversations are counted by the model's tokenizer, and " +
                                        scenario.model.name + " has no tokenizer.json");
  return conversation_counter({.tokenizer = tokenizer,
                               .file = file,
                               .max_position_embeddings = model.max_position_embeddings,
                               .requests = scenario.workload.served.requests,
                               .seed = scenario.workload.served.seed});
}

}  // namespace

std::string find_requests_file(const config::Scenario& scenario) {
  const std::filesystem::path beside = std::filesystem::path(scenario.file).parent_path() / scenario.workload.file;
  return std::filesystem::exists(beside) ? beside.string() : scenario.workload.file;
}

RequestWorkload resolve_requests(const config::Scenario& scenario, const ModelShape& model) {
  RequestWorkload workload = scenario.workload.served;
  workload.vocab_size = model.vocab_size;
  workload.padding.skipped = scenario.options.kv_skip.padding;
  for (LengthDistribution* lengths : {&workload.prompt, &workload.output})
    if (lengths->kind != LengthKind::fixed) lengths->most = std::min(lengths->most, model.max_position_embeddings);
  if (!scenario.workload.file.empty()) {
    const std::string file = find_requests_file(scenario);
    const bool conversations = std::filesystem::path(file).extension() == ".json";
    if (conversations && workload.arrival == ArrivalKind::replay)
      throw InputError(scenario.file,
                       "workload.arrival: conversations carry no times to replay; use poisson or bursty");
    workload.recorded =
        conversations ? count_conversations(scenario, model, file) : config::read_request_trace_file(file);
  }
  if (const auto found = problems(workload); !found.empty())
    throw InputError(scenario.file, "workload." + found.front());
  return workload;
}

void count_conversations_with(ConversationCounter counter) { conversation_counter = counter; }

}  // namespace dculab::study
