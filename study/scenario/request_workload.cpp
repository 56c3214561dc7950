#include "study/scenario/request_workload.hpp"

#include <algorithm>
#include <filesystem>

#include "config/conversations_file.hpp"
#include "config/request_trace_file.hpp"
#include "core/error.hpp"
#include "engine/measure/conversation_requests.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] std::vector<RecordedRequest> conversation_lengths(const config::Scenario& scenario,
                                                                const ModelShape& model, const std::string& file) {
  const std::filesystem::path tokenizer = find_model(scenario.model.name) / "tokenizer.json";
  if (!std::filesystem::exists(tokenizer))
    throw InputError(scenario.file, "workload.file: conversations are counted by the model's tokenizer, and " +
                                        scenario.model.name + " has no tokenizer.json");
  std::vector<engine::AnsweredPrompt> conversations;
  for (config::Exchange& exchange : config::read_conversations_file(file))
    conversations.push_back({.prompt = std::move(exchange.prompt), .answer = std::move(exchange.answer)});
  const engine::Tokenizer counter = engine::Tokenizer::load(tokenizer);
  std::vector<RecordedRequest> lengths;
  for (const engine::TextRequest& request :
       engine::sample_requests(conversations, counter, {.max_position_embeddings = model.max_position_embeddings},
                               scenario.workload.served.requests, scenario.workload.served.seed))
    lengths.push_back(
        {{}, static_cast<int>(counter.encode(request.prompt, engine::SpecialTokens::add).size()), request.max_tokens});
  return lengths;
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
        conversations ? conversation_lengths(scenario, model, file) : config::read_request_trace_file(file);
  }
  if (const auto found = problems(workload); !found.empty())
    throw InputError(scenario.file, "workload." + found.front());
  return workload;
}

}  // namespace dculab::study
