// `dculab recommend`: which sizes and limits an engine should have on a machine, and when others.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/output_options.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/load_choices.hpp"
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
  add_load_choices(*command, *choices);
  const auto add_count = [&command](const char* option, int& value, const char* help) {
    command->add_option(option, value, help)->check(at_least(1));
  };
  add_count("--concurrency", choices->concurrency, "Most requests that are served at a time");
  add_count("--block-size", choices->block_size, "Use this one instead of choosing");
  command->add_flag("--any-kv-heads", choices->any_kv_heads, "KV heads may change: the model is retrained");
  reads(command->add_option("--trace", choices->trace_file,
                            "Trace of steps measured on the machine, to check the choice against"));
  add_report_options(*command, options->output);
  command->callback([options] { present::show(recommend(options->question), options->output); });
}

}  // namespace dculab::cli
