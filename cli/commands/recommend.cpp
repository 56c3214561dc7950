// `dculab recommend`: which sizes and limits an engine should have on a machine, and when others.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/output_options.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/step_choices.hpp"
#include "present/study/recommend_report.hpp"
#include "study/answer/recommendation_question.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

struct RecommendOptions {
  study::RecommendChoices question;
  present::OutputOptions output;
};

[[nodiscard]] present::Report recommend(const study::RecommendChoices& choices) {
  const study::RecommendationQuestion question = study::recommendation_question(choices);
  return present::recommendation_report(question, study::recommend_serving(question));
}

}  // namespace

void add_recommend(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("recommend", "Recommend sizes and limits for a machine, model, workload and SLO");
  auto options = std::make_shared<RecommendOptions>();
  study::RecommendChoices* choices = &options->question;
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
  add_count("--concurrency", choices->concurrency, "Most requests that are served at a time");
  command->add_option("--ttft", choices->ttft, "Longest time to first token, with its unit: '2 s'");
  command->add_option("--tpot", choices->tpot, "Longest time per output token: '50 ms'");
  command->add_option("--kv-cache-dtype", choices->kv_cache_dtype, "Use this one instead of choosing");
  add_count("--block-size", choices->block_size, "Use this one instead of choosing");
  command->add_flag("--any-kv-heads", choices->any_kv_heads, "KV heads may change: the model is retrained");
  reads(command->add_option("--trace", choices->trace_file,
                            "Trace of steps measured on the machine, to check the choice against"));
  command->add_option("--set", choices->set, "key=value: any key of a scenario file")->option_text("KEY=VALUE ...");
  add_report_options(*command, options->output);
  command->callback([options] { present::show(recommend(options->question), options->output); });
}

}  // namespace dculab::cli
