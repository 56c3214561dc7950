#include "cli/bench/workload_bench.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>

#include "cli/progress.hpp"
#include "cli/scenario/engine_choices.hpp"
#include "cli/scenario/step_choices.hpp"
#include "config/conversations_file.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "engine/generate/generator.hpp"
#include "engine/generate/serve_replicas.hpp"
#include "engine/measure/conversation_requests.hpp"
#include "engine/tokenizer/pad_token.hpp"
#include "present/engine/draft_report.hpp"
#include "present/engine/expert_report.hpp"
#include "present/study/serving_report.hpp"
#include "study/measure/engine_weights.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::cli {
namespace {

// LLM-CoOpt's equations 11 and 12, and the two figures that vLLM's benchmark_throughput prints.
struct ServingFigures {
  Seconds latency_sum;  // eq. 11: of all requests, from arrival to last token
  Seconds latency_mean;
  double requests_per_second = 0;
  double tokens_per_second = 0;            // prompts and answers: "all throughput"
  double generated_tokens_per_second = 0;  // eq. 12: "generate throughput"
  Seconds ttft_median, tpot_median;
};

[[nodiscard]] Seconds median_of(const std::vector<RequestStats>& requests, Seconds RequestStats::*figure) {
  std::vector<Seconds> values;
  for (const RequestStats& request : requests) values.push_back(request.*figure);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

[[nodiscard]] ServingFigures figures_of(const ServingReport& report) {
  ServingFigures figures;
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

[[nodiscard]] engine::GeneratorOptions generator_options(const WorkloadChoices& choices, const WorkloadSetting& setting,
                                                         int block_size, const std::string& kv_cache_dtype) {
  engine::GeneratorOptions options;
  options.device = parse_option("--device", setting.device, engine::parse_device);
  options.num_threads = setting.threads;
  options.division = setting.division;
  options.engine.block_size = block_size;
  options.engine.kv_cache_dtype = parse_kv_dtype_option("--kv-cache-dtype", kv_cache_dtype);
  options.engine.activations = parse_option("--activations", setting.activations, parse_activations);
  options.engine.kv_retention = setting.retention;
  options.engine.max_num_seqs = choices.max_num_seqs;
  options.engine.max_num_batched_tokens = choices.max_num_batched_tokens;
  options.engine.enable_prefix_caching = choices.enable_prefix_caching;
  options.engine.prefix_eviction = parse_option("--prefix-eviction", choices.prefix_eviction, [&](const auto& text) {
    return parse_prefix_eviction(text, choices.enable_prefix_caching);
  });
  options.engine.kv_skip = parse_skip(choices.skip);
  set_speculation(setting.speculation, options);
  if (const auto found = problems(options.engine); !found.empty()) throw InputError(found.front());
  return options;
}

[[nodiscard]] std::vector<engine::TextRequest> requests_of(const WorkloadChoices& choices,
                                                           const std::vector<engine::AnsweredPrompt>& conversations,
                                                           const engine::Tokenizer& tokenizer,
                                                           const ModelShape& shape) {
  auto requests =
      engine::sample_requests(conversations, tokenizer, {.max_position_embeddings = shape.max_position_embeddings},
                              choices.num_prompts, choices.seed);
  if (requests.empty())
    throw InputError(choices.file, "no conversation has a prompt and an answer of at least 4 tokens each that fit " +
                                       std::string("into the model's context"));
  return requests;
}

[[nodiscard]] std::optional<engine::ModelWeights> draft_weights(const WorkloadSetting& setting,
                                                                const std::filesystem::path& target) {
  if (setting.speculation.model.empty()) return std::nullopt;
  const std::filesystem::path folder = study::find_model(setting.speculation.model);
  engine::require_same_tokens(target, folder);
  return study::load_or_make_weights(folder, setting.random_weights);
}

[[nodiscard]] ServingReport serve(engine::Generator& generator, const std::vector<engine::TextRequest>& requests,
                                  const std::string& label, ProgressBar& bar) {
  double to_generate = 0, shown = 0;
  for (const engine::TextRequest& request : requests) to_generate += request.max_tokens;
  const engine::OnText on_text = [&](std::size_t, std::string_view) { bar.update(label, ++shown / to_generate); };
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

[[nodiscard]] engine::ReplicaChoices replica_choices(const WorkloadChoices& choices) {
  const auto parse = [](const std::string& text) {
    for (const Routing routing : {Routing::round_robin, Routing::random, Routing::least_requests, Routing::least_tokens,
                                  Routing::prefix_affinity})
      if (text == name(routing)) return routing;
    throw InputError("'" + text + "' is not a routing; use round_robin, random, least_requests, least_tokens or " +
                     "prefix_affinity");
  };
  const Routing routing = parse_option("--routing", choices.routing, parse);
  if (routing != Routing::round_robin && choices.data_parallel_size == 1)
    throw InputError("--routing", "does nothing with a single replica; add --data-parallel-size");
  return {.data_parallel_size = choices.data_parallel_size, .routing = routing};
}

[[nodiscard]] ServingReport serve_on_replicas(const std::filesystem::path& folder, const engine::ModelWeights& weights,
                                              const engine::GeneratorOptions& asked, const WorkloadChoices& choices,
                                              const std::vector<engine::AnsweredPrompt>& conversations,
                                              present::Report& report, ProgressBar& bar) {
  const engine::Tokenizer tokenizer = engine::Tokenizer::load(folder / "tokenizer.json");
  const std::vector<engine::TextRequest> requests = requests_of(choices, conversations, tokenizer, weights.shape);
  EngineOptions options = engine::served_options(asked, weights.shape);
  options.kv_skip = engine::with_pad_token(options.kv_skip, folder, tokenizer);
  const auto replicas = engine::open_replicas(weights, options, asked, choices.data_parallel_size);
  if (report.heading.empty())
    report.heading = {std::to_string(replicas->count()) + " replicas on " + replicas->executor(0).device_name() +
                      " each, " + replicas->executor(0).build_name()};
  ServingReport served;
  const auto finish = [&](const Sequence& sequence) {
    served.add(sequence, RequestRecords::keep);
    served.duration = std::max(served.duration, sequence.token_times.back());
    bar.update("serving", static_cast<double>(served.requests.size()) / static_cast<double>(requests.size()));
  };
  const engine::ServedWorkload run =
      engine::serve_on_replicas(*replicas, options, replica_choices(choices),
                                as_tokens(requests, tokenizer, options.kv_skip), {.on_finished = finish});
  served.num_steps = run.num_steps;
  served.executor_time = run.busy;
  served.drafts = run.drafts;
  served.drafting = run.drafting;
  return served;
}

[[nodiscard]] present::Report empty_workload_report(const WorkloadChoices& choices, const WorkloadSetting& setting) {
  present::Report report{"dculab/bench-workload/1", {}, {}, present::Json::object()};
  report.json["model"] = setting.model;
  report.json["workload"] = choices.file;
  report.json["activations"] = setting.activations;
  report.json["arrival"] = "all_at_once";
  report.json["data_parallel_size"] = replica_choices(choices).replicas();
  report.json["rows"] = present::Json::array();
  present::Table& table = report.tables.emplace_back();
  table.columns = {"KV dtype",   "block",    "requests",    "latency, sum", "latency, mean",
                   "requests/s", "tokens/s", "generated/s", "TTFT",         "TPOT"};
  table.notes = {"All requests arrive at once. tokens/s: prompts and answers; TTFT, TPOT: medians."};
  return report;
}

void add_row(present::Report& report, const std::string& kv_cache_dtype, int block_size, const ServingReport& served) {
  const ServingFigures figures = figures_of(served);
  const auto time = [](Seconds seconds) { return present::Cell(config::short_text(seconds), seconds.value()); };
  const auto rate = [](double value) { return present::Cell(present::number(value), value); };
  report.tables.front().rows.push_back(
      {kv_cache_dtype, std::to_string(block_size), std::to_string(served.requests.size()), time(figures.latency_sum),
       time(figures.latency_mean), rate(figures.requests_per_second), rate(figures.tokens_per_second),
       rate(figures.generated_tokens_per_second), time(figures.ttft_median), time(figures.tpot_median)});
  report.json["rows"].push_back({{"kv_cache_dtype", kv_cache_dtype},
                                 {"block_size", block_size},
                                 {"requests", served.requests.size()},
                                 {"prompt_tokens", served.num_prompt_tokens},
                                 {"cached_prompt_tokens", served.num_cached_tokens},
                                 {"generated_tokens", served.num_generated_tokens},
                                 {"duration_seconds", served.duration.value()},
                                 {"steps", served.num_steps},
                                 {"preemptions", served.num_preemptions},
                                 {"latency_seconds_sum", figures.latency_sum.value()},
                                 {"latency_seconds_mean", figures.latency_mean.value()},
                                 {"all_requests_per_second", figures.requests_per_second},
                                 {"all_tokens_per_second", figures.tokens_per_second},
                                 {"generated_tokens_per_second", figures.generated_tokens_per_second},
                                 {"ttft_seconds_median", figures.ttft_median.value()},
                                 {"tpot_seconds_median", figures.tpot_median.value()}});
  present::add_skipped(served.num_padding_tokens, served.num_duplicate_tokens, report.json["rows"].back());
}

// All rows draft, or none does.
void add_drafts(present::Report& report, const ServingReport& served) {
  present::Table& table = report.tables.front();
  if (table.rows.size() == 1) std::ranges::copy(present::draft_columns(), std::back_inserter(table.columns));
  const present::DraftFigures figures{
      .counts = served.drafts, .drafting = served.drafting, .verifying = served.executor_time};
  std::ranges::move(present::draft_cells(figures), std::back_inserter(table.rows.back()));
  report.json["rows"].back()["speculation"] = present::draft_json(figures);
}

// Of mixtures: all rows are of one model.
void add_experts(present::Report& report, const ExpertHistogram& experts) {
  if (experts.is_empty()) return;
  present::Table& table = report.tables.front();
  if (table.rows.size() == 1) {
    std::ranges::copy(present::expert_columns(), std::back_inserter(table.columns));
    report.heading.push_back(present::expert_heading());
  }
  std::ranges::move(present::expert_cells(experts), std::back_inserter(table.rows.back()));
  report.json["rows"].back()["experts"] = present::expert_json(experts);
}

}  // namespace

present::Report bench_workload(const WorkloadChoices& choices, const WorkloadSetting& setting) {
  std::vector<engine::AnsweredPrompt> conversations;
  for (config::Exchange& exchange : config::read_conversations_file(choices.file))
    conversations.push_back({.prompt = std::move(exchange.prompt), .answer = std::move(exchange.answer)});
  const std::filesystem::path folder = study::find_model(setting.model);
  const engine::ModelWeights weights = study::load_or_make_weights(folder, setting.random_weights);
  study::require_activations(parse_option("--activations", setting.activations, parse_activations), weights.shape);
  const std::optional<engine::ModelWeights> draft = draft_weights(setting, folder);
  present::Report report = empty_workload_report(choices, setting);
  ProgressBar bar;
  for (const int block_size : setting.block_sizes)
    for (const std::string& kv_cache_dtype : setting.kv_cache_dtypes) {
      engine::GeneratorOptions options = generator_options(choices, setting, block_size, kv_cache_dtype);
      options.draft_weights = draft;
      if (choices.data_parallel_size > 1) {
        const ServingReport served = serve_on_replicas(folder, weights, options, choices, conversations, report, bar);
        add_row(report, kv_cache_dtype, block_size, served);
        if (setting.speculation.asked()) add_drafts(report, served);
        continue;
      }
      engine::Generator generator(folder, weights, options);
      if (report.heading.empty())
        report.heading = {generator.executor().device_name() + ", " + generator.executor().build_name()};
      const std::string label = "KV " + kv_cache_dtype + ", block " + std::to_string(block_size);
      const ServingReport served =
          serve(generator, requests_of(choices, conversations, generator.tokenizer(), generator.shape()), label, bar);
      add_row(report, kv_cache_dtype, block_size, served);
      if (setting.speculation.asked()) add_drafts(report, served);
      add_experts(report, generator.executor().take_expert_histogram());
    }
  bar.clear();
  return report;
}

}  // namespace dculab::cli
