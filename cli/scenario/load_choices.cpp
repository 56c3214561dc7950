#include "cli/scenario/load_choices.hpp"

#include <CLI/CLI.hpp>

#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/step_choices.hpp"
#include "core/kv/table.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {

void add_load_choices(CLI::App& command, study::LoadQuestion& question) {
  reads(command.add_option("--model", question.model, "Folder with config.json, or a name under scenarios/models"),
        study::try_find_model);
  reads(command.add_option("--machine", question.machines, "Machine files, or names under hwmodels"),
        study::try_find_machine);
  add_stack_option(command, question.stack);
  command.add_option("--weights", question.weights, kWeightsHelp);
  command.add_option("--kv-cache-dtype", question.kv_cache_dtype, kv_format_names() + kKvWordsHelp);
  const auto add_count = [&command](const char* option, int& value, const char* help) {
    command.add_option(option, value, help)->check(at_least(1));
  };
  add_count("--requests", question.requests, "Requests to serve, without a scenario 256");
  add_count("--prompt-tokens", question.prompt_tokens, "Tokens of a prompt, without a scenario 1024");
  add_count("--output-tokens", question.output_tokens, "Tokens of an answer, without a scenario 256");
  command.add_option("--requests-per-second", question.requests_per_second, "Requests arrive at random at this rate");
  reads(command.add_option("--dataset-path", question.dataset_path,
                           "Recorded requests (Azure, BurstGPT, Mooncake, Qwen-Bailian, Vidur), which arrive when they "
                           "did; or conversations in ShareGPT's format"))
      ->option_text("FILE");
  command.add_option("--ttft", question.ttft, "Longest time to first token, with its unit: '2 s'");
  command.add_option("--tpot", question.tpot, "Longest time per output token: '50 ms'");
  command.add_option("--set", question.set, "key=value: any key of a scenario file")->option_text("KEY=VALUE ...");
  add_tensor_parallel_size(command, question.set);
}

}  // namespace dculab::cli
