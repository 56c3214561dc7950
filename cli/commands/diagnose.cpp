// `dculab diagnose`: why a measured step is slower than predicted.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/output_options.hpp"
#include "cli/scenario/benchmark_choices.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/step_choices.hpp"
#include "present/study/diagnosis_report.hpp"

namespace dculab::cli {
namespace {

struct DiagnoseChoices {
  study::DiagnosisQuestion question;
  present::OutputOptions output;
};

[[nodiscard]] CLI::Validator above_zero() {
  return number_that_is("above 0", [](double value) { return value > 0; });
}

// A file says which batch and context it is of, and --at may.
void refuse_idle_places(const CLI::App& command, const study::DiagnosisQuestion& question) {
  const bool has_figure =
      question.tokens_per_second != 0 || !question.tpot.empty() || question.prefill_tokens_per_second != 0;
  const bool lacks_batch = std::ranges::any_of(
      question.at, [](const std::string& at) { return at.substr(0, at.find('=')).find('x') == std::string::npos; });
  if (question.files.empty() && question.at.empty()) return;  // nothing was measured
  refuse_idle(command, "--batch", !has_figure && !lacks_batch, "beside measurements that all name their batch");
  refuse_idle(command, "--context", !has_figure, "beside measurements that all name their context");
}

void add_measurements(CLI::App& command, study::DiagnosisQuestion& question) {
  reads(command.add_option("results", question.files,
                           "Results of vllm bench serve, SGLang's bench_serving, GuideLLM, AIPerf or llama-bench, or "
                           "folders of them"));
  const auto add_length = [&command](const char* option, int& tokens, const char* help) {
    command.add_option(option, tokens, help)->check(at_least(1));
  };
  add_length("--prompt-tokens", question.prompt_tokens,
             "Of a result whose file does not say it: tokens of each prompt");
  add_length("--output-tokens", question.output_tokens, "The same of each answer");
  command
      .add_option("--tokens-per-second", question.tokens_per_second,
                  "Measured: tokens generated per second, of all sequences of --batch")
      ->check(above_zero());
  command
      .add_option("--tpot", question.tpot, "Measured: time per output token of a sequence, at --batch and --context")
      ->option_text("TIME");
  command
      .add_option("--at", question.at,
                  "Measured: time per output token at several contexts, or batches and contexts: 512=24ms 8x1500=66ms")
      ->option_text("[BATCHx]CONTEXT=TIME ...");
  command
      .add_option("--prefill-tokens-per-second", question.prefill_tokens_per_second,
                  "Measured: tokens of prompts of --context tokens per second, of all of --batch")
      ->check(above_zero());
}

}  // namespace

void add_diagnose(CLI::App& app) {
  CLI::App* command = app.add_subcommand("diagnose", "Explain why a measured step is slower than predicted");
  auto choices = std::make_shared<DiagnoseChoices>();
  study::DiagnosisQuestion& question = choices->question;
  add_step_choices(*command, question.step);
  command->get_option("--model")->required(false);  // a result may name it
  command
      ->add_option("--tensor-parallel-size", question.tensor_parallel_size,
                   "Devices that share every layer of the model")
      ->check(at_least(1));
  command
      ->add_option("--enforce-eager", question.enforce_eager,
                   "Whether kernels are launched one by one, and no step is replayed as a graph: yes or no")
      ->check(CLI::IsMember({"yes", "no"}));
  command
      ->add_option("--desc-act", question.desc_act,
                   "Whether a GPTQ checkpoint has act-order: yes or no; default: what its config.json says")
      ->check(CLI::IsMember({"yes", "no"}));
  add_measurements(*command, question);
  add_output_options(*command, choices->output);
  add_examples(*command, {"dculab diagnose --model llama-3-8b --machine k100-ai --batch 1 --context 1024 --tpot 60ms"});
  command->callback([choices, command] {
    if (choices->question.files.empty() && command->get_option("--model")->count() == 0)
      throw CLI::RequiredError("--model");
    refuse_idle_places(*command, choices->question);
    present::show(present::diagnosis_report(study::diagnose(choices->question)), choices->output);
  });
}

}  // namespace dculab::cli
