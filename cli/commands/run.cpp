// `dculab run`: generates text with the real engine.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/output_options.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/generator_choices.hpp"
#include "present/measure/completions_report.hpp"
#include "present/output/show.hpp"
#include "present/output/standard_output.hpp"
#include "study/measure/generated_text.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

struct RunChoices {
  study::TextQuestion question;
  GeneratorChoices generator;
  present::OutputOptions output;
};

// One prompt's text as it is generated. The prompt comes with the first of it: a refused one prints nothing.
class TextStream {
 public:
  explicit TextStream(const std::string& prompt) : prompt_(prompt) {}

  void add(std::string_view text) {
    if (!started_) present::print(prompt_);
    started_ = true;
    present::print(text);
  }
  void finish() { add("\n"); }

 private:
  const std::string& prompt_;
  bool started_ = false;
};

void run_engine(const CLI::App& command, const RunChoices& choices) {
  study::TextQuestion question = choices.question;
  question.generator = generator_options(command, choices.generator);
  const std::vector<std::string> prompts = study::read_prompts(question);
  const bool is_text = choices.output.format == present::Format::table;
  const bool streams = is_text && choices.output.file.empty() && prompts.size() == 1 && question.n == 1;
  TextStream stream(prompts.front());
  engine::OnText on_text;
  if (streams) on_text = [&stream](std::size_t, std::string_view text) { stream.add(text); };
  const study::GeneratedText text = study::generate_text(question, prompts, on_text);
  const bool is_batch = !question.prompts_file.empty();  // whose other texts are shown first
  if (!is_batch) study::refuse_unserved_prompts(question, text.generation);
  if (streams)
    stream.finish();
  else
    present::show(is_text ? present::text_report(text.prompts, text.generation)
                          : present::completions_report(text.prompts, text.generation),
                  choices.output);
  if (!text.generation.report.requests.empty()) std::cerr << present::serving_summary(text.generation.report) << '\n';
  if (is_batch) study::refuse_unserved_prompts(question, text.generation);
}

void add_sampling_options(CLI::App& command, study::TextQuestion& question) {
  command.add_option("--max-tokens", question.max_tokens, "Most tokens to generate")
      ->check(between(1, kLongestContext));
  command.add_option("--temperature", question.temperature, "0 = greedy")
      ->check(number_that_is("at least 0", [](double value) { return value >= 0; }));
  command.add_option("--top-k", question.top_k, "Sample from the k most likely tokens, 0 = all")->check(at_least(0));
  command.add_option("--top-p", question.top_p, "Sample from the most likely tokens with probability p together")
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--seed", question.seed, "Same seed, same text, whatever else is in the batch");
  command.add_flag("--ignore-eos", question.ignore_eos, "Continue after the end-of-text token");
  command.add_option("--n", question.n, "Samples of each prompt, which is computed once")->check(CLI::Range(1, 1024));
}

}  // namespace

void add_run(CLI::App& app) {
  CLI::App* command = app.add_subcommand("run", "Generate text with the engine");
  auto choices = std::make_shared<RunChoices>();
  reads(
      command->add_option("--model", choices->question.model, "Hugging Face folder, or a name under scenarios/models"),
      study::try_find_model)
      ->required();
  CLI::Option_group* source = command->add_option_group("what to continue");
  source->add_option("--prompt", choices->question.prompt, "The text to continue; streamed");
  reads(source->add_option("--prompts", choices->question.prompts_file,
                           "A file with one prompt per line; batched continuously"));
  source->require_option(1);
  add_sampling_options(*command, choices->question);
  add_generator_options(*command, choices->generator);
  add_output_options(*command, choices->output);
  add_examples(*command, {"dculab run --model dculab-tiny --prompt 'The memory of a GPU' --max-tokens 8"});
  command->callback([choices, command] { run_engine(*command, *choices); });
}

}  // namespace dculab::cli
