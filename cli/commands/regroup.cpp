// `dculab regroup`: a model with fewer KV heads, as a new model folder.
#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>

#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/output_options.hpp"
#include "cli/progress.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "present/measure/regroup_report.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

struct RegroupChoices {
  std::string method;
  std::string similarity = "cosine";
  std::string compared = "kv";
  std::string error;  // empty: what the merge loses, where it is one of them, else that of weights
  std::string merge = "mean";
  study::RegroupQuestion question;
  present::OutputOptions output;
};

// What an option may say, by its name.
template <class Values>
[[nodiscard]] auto by_name(const Values& values) {
  std::map<std::string, typename Values::value_type> named;
  for (const auto value : values) named.emplace(name(value), value);
  return named;
}

[[nodiscard]] study::RegroupQuestion regroup_question(const RegroupChoices& choices) {
  study::RegroupQuestion question = choices.question;
  engine::RegroupOptions& options = question.options;
  options.method = by_name(engine::kGroupingMethods).at(choices.method);
  options.similarity = by_name(engine::kHeadSimilarities).at(choices.similarity);
  options.compared = by_name(engine::kComparedHeads).at(choices.compared);
  options.merge = by_name(engine::kHeadMerges).at(choices.merge);
  const bool by_svd = options.merge == engine::HeadMerge::svd;
  options.error = !choices.error.empty() ? by_name(engine::kLostErrors).at(choices.error)
                  : by_svd               ? engine::LostError::svd
                                         : engine::LostError::weights;
  return question;
}

// Options that do nothing beside the others.
void refuse_idle_options(const CLI::App& command, const RegroupChoices& choices) {
  for (const char* option : {"--error", "--seed"})
    refuse_idle(command, option, choices.method != "qcqa", "with --method " + choices.method);
  for (const char* option : {"--similarity", "--compare", "--calibration-tokens"})
    refuse_idle(command, option, choices.question.calibration.empty(), "without --calibration");
}

void run_regroup(const CLI::App& command, const RegroupChoices& choices) {
  const study::RegroupQuestion question = regroup_question(choices);
  study::require_calibration(question);
  refuse_idle_options(command, choices);
  ProgressBar bar;
  const study::RegroupedFolder made = study::regroup_folder(question, bar.updates());
  bar.clear();
  present::show(present::regroup_report(question, made), choices.output);
}

// How heads are compared, and made one.
void add_comparison_options(CLI::App& command, RegroupChoices& choices) {
  command.add_option("--similarity", choices.similarity, "Similarity of heads, over the calibration text")
      ->check(CLI::IsMember(by_name(engine::kHeadSimilarities)))
      ->option_text("cosine|norm|distance|svd [cosine]");
  command.add_option("--compare", choices.compared, "What is compared: K and V, query heads, or their outputs")
      ->check(CLI::IsMember(by_name(engine::kComparedHeads)))
      ->option_text("kv|query|output [kv]");
  command
      .add_option("--error", choices.error,
                  "qcqa: error of K and V weights, of activations on the text, or of a merge by SVD")
      ->check(CLI::IsMember(by_name(engine::kLostErrors)))
      ->option_text("weights|activations|svd [svd with --merge svd, else weights]");
  command.add_option("--seed", choices.question.options.search.seed, "qcqa: seed of the search");
  command
      .add_option("--merge", choices.merge,
                  "mean; weighted: by what heads add to the residual; fitted: weights that lose least; svd: what "
                  "loses least, Q and O following")
      ->check(CLI::IsMember(by_name(engine::kHeadMerges)))
      ->option_text("mean|weighted|fitted|svd [mean]");
}

}  // namespace

void add_regroup(CLI::App& app) {
  CLI::App* command = app.add_subcommand("regroup", "Make a model with fewer KV heads: MHA to GQA or MQA");
  auto choices = std::make_shared<RegroupChoices>();
  reads(
      command->add_option("--model", choices->question.model, "Hugging Face folder, or a name under scenarios/models"),
      study::try_find_model)
      ->required();
  command
      ->add_option("--kv-heads", choices->question.options.num_key_value_heads,
                   "KV heads of the new model, a divisor of the model's; qcqa: the most on average")
      ->required();
  command
      ->add_option(
          "--method", choices->method,
          "mean: neighbours become one; similarity: similar heads; key-norm: neighbours, by the norms of keys; "
          "qcqa: groups of any sizes that lose least, layers may differ")
      ->required()
      ->check(CLI::IsMember(by_name(engine::kGroupingMethods)))
      ->option_text("mean|similarity|key-norm|qcqa REQUIRED");
  add_comparison_options(*command, *choices);
  reads(command->add_option("--calibration", choices->question.calibration, "Text to compare heads on"))
      ->option_text("TEXT_FILE");
  command->add_option("--calibration-tokens", choices->question.calibration_tokens, "Most tokens of the text to read")
      ->check(at_least(study::kFewestCalibrationTokens));
  command->add_option("--threads", choices->question.num_threads, "Worker threads, 0 = all cores")
      ->check(thread_count());
  writes(command->add_option("--output", choices->question.folder, "The new model folder, made whole or not at all"))
      ->required()
      ->option_text("FOLDER REQUIRED");
  add_format_option(*command, choices->output);
  add_examples(*command,
               {"dculab regroup --model dculab-tiny --kv-heads 2 --method mean --output dculab-tiny-2-heads"});
  command->callback([choices, command] { run_regroup(*command, *choices); });
}

}  // namespace dculab::cli
