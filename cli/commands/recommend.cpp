// `dculab recommend`: which sizes and limits an engine should have on a machine, and when others.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/output_options.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/load_choices.hpp"
#include "config/benchmarks/vllm_writer.hpp"
#include "core/error.hpp"
#include "files/output.hpp"
#include "present/study/disaggregated_report.hpp"
#include "present/study/recommend_report.hpp"
#include "present/study/serve_command.hpp"
#include "study/answer/recommendation_question.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

struct RecommendOptions {
  study::RecommendChoices question;
  std::string serve_params, bench_params;  // files to write
  present::OutputOptions output;
};

void write_parameters(const RecommendOptions& options, const std::vector<study::Recommendation>& found) {
  if (options.serve_params.empty() && options.bench_params.empty()) return;
  if (found.size() > 1)
    throw InputError("--serve-params", "and --bench-params are of one machine; give one of the " +
                                           std::to_string(found.size()) + " with --machine");
  if (!options.serve_params.empty())
    files::write_file_atomically(options.serve_params,
                                 config::vllm_parameters_json(present::serve_parameters(found.front())));
  if (!options.bench_params.empty())
    files::write_file_atomically(options.bench_params,
                                 config::vllm_parameters_json(present::bench_parameters(found.front())));
}

[[nodiscard]] present::Report recommend(const RecommendOptions& options) {
  const study::RecommendationQuestion question = study::recommendation_question(options.question);
  if (!question.decode_machine.empty()) {
    if (!options.serve_params.empty() || !options.bench_params.empty())
      throw InputError("--decode-machine", "--serve-params and --bench-params are of one server; leave them out");
    return present::disaggregated_report(question, study::recommend_disaggregated(question));
  }
  const std::vector<study::Recommendation> found = study::recommend_serving(question);
  write_parameters(options, found);
  return present::recommendation_report(question, found);
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
  add_count("--devices", choices->devices,
            "Devices of a server: how they share the model, and how many it takes, is chosen");
  add_count("--servers", choices->servers, "With --devices: servers at most, else as many as the load takes");
  reads(command->add_option("--decode-machine", choices->decode_machine,
                            "With --devices: decode replicas on this machine, perhaps the same, and prefill replicas "
                            "on --machine"),
        study::try_find_machine);
  command->add_flag("--any-kv-heads", choices->any_kv_heads, "KV heads may change: the model is retrained");
  reads(command->add_option("--trace", choices->trace_file,
                            "Trace of steps measured on the machine, to check the choice against"));
  add_output_file(*command, "--serve-params", options->serve_params,
                  "Write what is worth measuring for `vllm bench sweep serve --serve-params`");
  add_output_file(*command, "--bench-params", options->bench_params, "Write a server's load for its --bench-params");
  add_report_options(*command, options->output);
  add_examples(
      *command,
      {"dculab recommend --model llama-3-8b --machine k100-ai --stack vllm --requests-per-second 1 --ttft '2 s'",
       "dculab recommend --model qwen3-32b --machine k100-ai --stack vllm --devices 8 --requests-per-second 5"});
  command->callback([options, choices] {
    if (choices->scenario.empty()) choices->scenario = study::take_scenario(*choices);
    present::show(recommend(*options), options->output);
  });
}

}  // namespace dculab::cli
