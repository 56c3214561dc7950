#include "cli/scenario/benchmark_choices.hpp"

#include <CLI/CLI.hpp>

#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/step_choices.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {

void add_benchmark_choices(CLI::App& command, study::BenchmarkQuestion& question) {
  reads(
      command.add_option("--model", question.model,
                         "Of a benchmark: folder with config.json, or a name; default: the model that the file names"),
      study::try_find_model);
  command.add_option("--stack", question.stack,
                     "Of a benchmark or --serving: the server's stack, a name, a program or a file; default: the "
                     "program that the file names, or vllm");
  const auto add_count = [&command](const char* option, int& value, const char* help) {
    command.add_option(option, value, help)->check(at_least(1));
  };
  add_count("--batch", question.batch, "Of vllm bench latency: its --batch-size");
  add_count("--prompt-tokens", question.prompt_tokens,
            "Of a benchmark whose file does not say it: tokens of each prompt");
  add_count("--output-tokens", question.output_tokens, "The same of each answer");
  command
      .add_option("--set", question.set,
                  "Of a benchmark: key=value, any key of a scenario file: engine.max_num_seqs=64")
      ->option_text("KEY=VALUE ...");
  add_tensor_parallel_size(command, question.set);
}

}  // namespace dculab::cli
