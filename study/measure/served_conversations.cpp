#include "study/measure/served_conversations.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "config/conversations_file.hpp"
#include "core/error.hpp"
#include "engine/generate/serve_replicas.hpp"
#include "engine/tokenizer/pad_token.hpp"
#include "study/measure/conversation_lengths.hpp"
#include "study/measure/engine_weights.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/refuse.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] Seconds median_of(const std::vector<RequestStats>& requests, Seconds RequestStats::*figure) {
  std::vector<Seconds> values;
  for (const RequestStats& request : requests) values.push_back(request.*figure);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// What all variants are asked with.
struct Conversations {
  std::filesystem::path folder{};  // of the model
  engine::ModelWeights weights{};
  std::vector<config::Exchange> prompts{};
};

[[nodiscard]] std::vector<engine::TextRequest> sampled_requests(const ConversationQuestion& question,
                                                                const std::vector<config::Exchange>& conversations,
                                                                const engine::Tokenizer& tokenizer,
                                                                const ModelShape& shape) {
  std::vector<SampledConversation> sampled =
      sample_conversations(conversations, &tokenizer, {.max_position_embeddings = shape.max_position_embeddings},
                           question.num_prompts, question.seed);
  require_some(sampled, question.file);
  std::vector<engine::TextRequest> requests;
  for (SampledConversation& each : sampled)
    requests.push_back(
        {.prompt = std::move(each.prompt), .max_tokens = each.answer_tokens, .eos = EosHandling::ignore});
  return requests;
}

[[nodiscard]] std::optional<engine::ModelWeights> draft_weights(const ConversationQuestion& question,
                                                                const std::filesystem::path& target) {
  if (question.speculative_model.empty()) return std::nullopt;
  const std::filesystem::path folder = find_model(question.speculative_model);
  engine::require_same_tokens(target, folder);
  return load_or_make_weights(folder, question.random_weights);
}

[[nodiscard]] ServingReport serve_texts(engine::Generator& generator, const std::vector<engine::TextRequest>& requests,
                                        const std::string& label, const engine::BenchProgress& progress) {
  double to_generate = 0, shown = 0;
  for (const engine::TextRequest& request : requests) to_generate += request.max_tokens;
  const engine::OnText on_text = [&](std::size_t, std::string_view) { progress(label, ++shown / to_generate); };
  return generator.generate(requests, on_text).report;
}

// The requests' tokens, all at once, one after the other.
[[nodiscard]] engine::NextRequest as_tokens(const std::vector<engine::TextRequest>& requests,
                                            const engine::Tokenizer& tokenizer, const KvSkip& skip) {
  return [&requests, &tokenizer, skip, next = std::size_t{}]() mutable -> std::optional<Request> {
    if (next == requests.size()) return std::nullopt;
    const engine::TextRequest& text = requests[next];
    Request request{.id = static_cast<SequenceId>(next++),
                    .prompt_token_ids = tokenizer.encode(text.prompt, engine::SpecialTokens::add),
                    .max_tokens = text.max_tokens,
                    .sampling = text.sampling,
                    .eos = text.eos};
    if (skip.padding) take_out_padding(request, *skip.pad_token_id);
    return request;
  };
}

// Who serves, for the answer.
void name_engine(const engine::ModelExecutor& executor, ConversationAnswer& answer) {
  if (!answer.device.empty()) return;
  answer.device = executor.device_name();
  answer.build = executor.build_name();
}

[[nodiscard]] ServingReport serve_on_replicas(const Conversations& given, const engine::GeneratorOptions& asked,
                                              const ConversationQuestion& question, ConversationAnswer& answer,
                                              const engine::BenchProgress& progress) {
  const engine::Tokenizer tokenizer = engine::Tokenizer::load(given.folder / "tokenizer.json");
  const ModelShape& shape = given.weights.shape;
  const std::vector<engine::TextRequest> requests = sampled_requests(question, given.prompts, tokenizer, shape);
  EngineOptions options = engine::served_options(asked, shape);
  options.kv_skip = engine::with_pad_token(options.kv_skip, given.folder, tokenizer);
  const auto replicas = engine::open_replicas(given.weights, options, asked, question.replicas.replicas());
  name_engine(replicas->executor(0), answer);
  ServingReport served;
  const auto finish = [&](const Sequence& sequence) {
    served.add(sequence, RequestRecords::keep);
    served.duration = std::max(served.duration, sequence.token_times.back());
    progress("serving", static_cast<double>(served.requests.size()) / static_cast<double>(requests.size()));
  };
  const engine::ServedWorkload run = engine::serve_on_replicas(
      *replicas, options, question.replicas, as_tokens(requests, tokenizer, options.kv_skip), {.on_finished = finish});
  served.num_steps = run.num_steps;
  served.executor_time = run.busy;
  served.drafts = run.drafts;
  served.drafting = run.drafting;
  return served;
}

[[nodiscard]] ServedConversations serve_variant(const ConversationVariant& variant, const Conversations& given,
                                                const ConversationQuestion& question, ConversationAnswer& answer,
                                                const engine::BenchProgress& progress) {
  ServedConversations row{.kv_cache_dtype = variant.kv_cache_dtype, .block_size = variant.options.engine.block_size};
  if (question.replicas.replicas() > 1) {
    row.report = serve_on_replicas(given, variant.options, question, answer, progress);
  } else {
    engine::Generator generator(given.folder, given.weights, variant.options);
    name_engine(generator.executor(), answer);
    const std::string label = "KV " + row.kv_cache_dtype + ", block " + std::to_string(row.block_size);
    row.report =
        serve_texts(generator, sampled_requests(question, given.prompts, generator.tokenizer(), generator.shape()),
                    label, progress);
    row.experts = generator.executor().take_expert_histogram();
  }
  row.figures = conversation_figures(row.report);
  return row;
}

}  // namespace

ConversationFigures conversation_figures(const ServingReport& report) {
  ConversationFigures figures;
  for (const RequestStats& request : report.requests) figures.latency_sum += request.latency;
  const auto count = static_cast<double>(report.requests.size());
  const double seconds = report.duration.value();
  figures.latency_mean = figures.latency_sum / count;
  figures.requests_per_second = count / seconds;
  figures.tokens_per_second = static_cast<double>(report.num_prompt_tokens + report.num_generated_tokens) / seconds;
  figures.generated_tokens_per_second = static_cast<double>(report.num_generated_tokens) / seconds;
  figures.ttft_median = median_of(report.requests, &RequestStats::ttft);
  figures.tpot_median = median_of(report.requests, &RequestStats::tpot);
  return figures;
}

ConversationAnswer serve_conversations(const ConversationQuestion& question, const engine::BenchProgress& progress) {
  Conversations given;  // filled one by one: GCC 12 destroys members twice where one of a braced list throws
  given.prompts = config::read_conversations_file(question.file);
  given.folder = find_model(question.model);
  given.weights = load_or_make_weights(given.folder, question.random_weights);
  for (const ConversationVariant& variant : question.variants)
    require_activations(variant.options.engine.activations, given.weights.shape);
  const std::optional<engine::ModelWeights> draft = draft_weights(question, given.folder);
  ConversationAnswer answer;
  for (ConversationVariant variant : question.variants) {
    variant.options.draft_weights = draft;
    answer.rows.push_back(serve_variant(variant, given, question, answer, progress));
  }
  return answer;
}

}  // namespace dculab::study
