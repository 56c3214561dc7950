// `dculab recommend`: which sizes and limits an engine should have on a machine, and when others.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/output_options.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/step_choices.hpp"
#include "config/trace_file.hpp"
#include "config/yaml_text.hpp"
#include "present/study/recommend_report.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/serving_scenario.hpp"

namespace dculab::cli {
namespace {

struct RecommendChoices {
  std::string scenario;
  std::string model, stack, weights, kv_cache_dtype, ttft, tpot, requests_per_second, trace_file;
  std::vector<std::string> machines, set;
  int prompt_tokens = 0, output_tokens = 0, block_size = 0, concurrency = 0;  // 0: not given
  bool any_kv_heads = false;
  present::OutputOptions output;
};

constexpr const char* kQuestion = R"(schema: dculab/scenario/1
question: Which sizes and limits should the engine have?
workload: {requests: 256, prompt_tokens: 1024, output_tokens: 256}
)";

[[nodiscard]] Node document_of(const RecommendChoices& choices) {
  Node document = choices.scenario.empty() ? config::parse_yaml("command line", kQuestion)
                                           : config::read_yaml_file(study::find_scenario(choices.scenario).string());
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

[[nodiscard]] study::RecommendationQuestion question_of(const RecommendChoices& choices) {
  if (choices.scenario.empty() && (choices.model.empty() || choices.machines.empty()))
    throw InputError("recommend", "needs --model and --machine, or a scenario file");
  study::RecommendationQuestion question;
  const std::string file = choices.scenario.empty() ? "command line" : study::find_scenario(choices.scenario).string();
  question.scenario = config::read_scenario(file, document_of(choices));
  study::refuse_unrecommended(question.scenario);
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

[[nodiscard]] present::Report recommend(const RecommendChoices& choices) {
  const study::RecommendationQuestion question = question_of(choices);
  std::vector<study::Recommendation> found;
  for (const std::string& machine : question.scenario.machines)
    found.push_back(study::recommend_serving(question, machine));
  return present::recommendation_report(question, found);
}

}  // namespace

void add_recommend(CLI::App& app) {
  CLI::App* command = app.add_subcommand("recommend", "Sizes and limits for a machine, model, workload and SLO");
  auto choices = std::make_shared<RecommendChoices>();
  reads(command->add_option("scenario", choices->scenario, "Scenario file with requests, or a name under scenarios"),
        study::try_find_scenario);
  reads(command->add_option("--model", choices->model, "Folder with config.json, or a name under scenarios/models"),
        study::try_find_model);
  reads(command->add_option("--machine", choices->machines, "Machine files, or names under hwmodels"),
        study::try_find_machine);
  add_stack_option(*command, choices->stack);
  command->add_option("--weights", choices->weights, kWeightsHelp);
  const auto add_count = [&command](const char* option, int& value, const char* help) {
    command->add_option(option, value, help)->check(at_least(1));
  };
  add_count("--prompt-tokens", choices->prompt_tokens, "Tokens of a prompt, without a scenario 1024");
  add_count("--output-tokens", choices->output_tokens, "Tokens of an answer, without a scenario 256");
  command->add_option("--requests-per-second", choices->requests_per_second, "Requests arrive at random at this rate");
  add_count("--concurrency", choices->concurrency, "Serve at most so many requests at a time");
  command->add_option("--ttft", choices->ttft, "Longest time to first token, with its unit: '2 s'");
  command->add_option("--tpot", choices->tpot, "Longest time per output token: '50 ms'");
  command->add_option("--kv-cache-dtype", choices->kv_cache_dtype, "This one, instead of choosing");
  add_count("--block-size", choices->block_size, "This one, instead of choosing");
  command->add_flag("--any-kv-heads", choices->any_kv_heads, "KV heads may change: the model is retrained");
  reads(command->add_option("--trace", choices->trace_file,
                            "Steps measured on the machine: what the choice costs there"));
  command->add_option("--set", choices->set, "key=value: any key of a scenario file")->option_text("KEY=VALUE ...");
  add_report_options(*command, choices->output);
  command->callback([choices] { present::show(recommend(*choices), choices->output); });
}

}  // namespace dculab::cli
