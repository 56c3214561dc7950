#include "study/scenario/request_workload.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "config/known_format.hpp"
#include "config/request_trace_file.hpp"
#include "core/error.hpp"
#include "files/input.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::study {
namespace {

ConversationCounter conversation_counter = nullptr;

// Empty where the model has none.
[[nodiscard]] std::filesystem::path tokenizer_of(const config::Scenario& scenario) {
  const std::filesystem::path tokenizer = find_model(scenario.model.name) / "tokenizer.json";
  return std::filesystem::exists(tokenizer) ? tokenizer : "";
}

[[nodiscard]] std::vector<RecordedRequest> count_conversations(const config::Scenario& scenario,
                                                               const ModelShape& model, const std::string& file) {
  if (conversation_counter == nullptr)
    throw InputError(scenario.file,
                     "workload.file: conversations are counted by the model's tokenizer, which this program does "
                     "without; give the lengths in a CSV file");
  const int wanted = scenario.workload.served.requests;
  return conversation_counter({.tokenizer = tokenizer_of(scenario),
                               .file = file,
                               .max_position_embeddings = model.max_position_embeddings,
                               .requests = wanted == config::kAllRequests ? std::numeric_limits<int>::max() : wanted,
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
    const bool conversations = holds_conversations(file);
    if (conversations && workload.arrival == ArrivalKind::replay)
      throw InputError(scenario.file,
                       "workload.arrival: conversations carry no times to replay; use poisson or bursty");
    workload.recorded =
        conversations ? count_conversations(scenario, model, file) : config::read_request_trace_file(file);
    if (workload.requests == config::kAllRequests) workload.requests = static_cast<int>(workload.recorded.size());
  }
  if (const auto found = problems(workload); !found.empty())
    throw InputError(scenario.file, "workload." + found.front());
  return workload;
}

bool holds_conversations(const std::string& file) {
  constexpr std::size_t kBeginning = std::size_t{1} << 16U;
  if (!std::filesystem::is_regular_file(file) && !files::is_handed_over(file))
    return std::filesystem::path(file).extension() == ".json";
  std::string beginning;
  const auto next = files::read_text_pieces(file, std::numeric_limits<std::size_t>::max());
  for (std::string_view piece = next(); !piece.empty() && beginning.size() < kBeginning; piece = next())
    beginning += piece;
  return config::recognize(beginning) == config::KnownFormat::conversations;
}

bool counted_by_length(const config::Scenario& scenario) {
  return !scenario.workload.file.empty() && holds_conversations(find_requests_file(scenario)) &&
         tokenizer_of(scenario).empty();
}

void count_conversations_with(ConversationCounter counter) { conversation_counter = counter; }

}  // namespace dculab::study
