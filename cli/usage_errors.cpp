#include "cli/usage_errors.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <vector>

#include "core/allowed_numbers.hpp"
#include "fields/near_words.hpp"
#include "fields/printable_text.hpp"

namespace dculab::cli {
namespace {

constexpr std::size_t kLongestReason = 1000;

[[nodiscard]] bool is_option(std::string_view argument) { return argument.starts_with('-') && argument.size() > 1; }

[[nodiscard]] std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  // A group of options is a command without a name.
  for (const CLI::App* group : command.get_subcommands([](const CLI::App* each) { return each->get_name().empty(); }))
    for (std::string& name : option_names(*group)) names.push_back(std::move(name));
  return names;
}

[[nodiscard]] std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!command->get_name().empty()) names.push_back(command->get_name());
  return names;
}

// What other programs call the options that we have, or the keys of a scenario.
struct OtherName {
  std::string_view theirs, ours;
};
constexpr OtherName kOtherNames[] = {{"--request-rate", "--requests-per-second"},
                                     {"--rps", "--requests-per-second"},
                                     {"--qps", "--requests-per-second"},
                                     {"--num-prompts", "--requests"},
                                     {"--input-len", "--prompt-tokens"},
                                     {"--random-input-len", "--prompt-tokens"},
                                     {"--output-len", "--output-tokens"},
                                     {"--random-output-len", "--output-tokens"},
                                     {"--gpu", "--machine"},
                                     {"--device", "--machine"},
                                     {"--gpus", "--devices"},
                                     {"--num-gpus", "--devices"},
                                     {"--dtype", "--weights"},
                                     {"--quantization", "--weights"},
                                     {"--kv-dtype", "--kv-cache-dtype"},
                                     {"--batch-size", "--batch"},
                                     {"--batch", "workload.batch"},
                                     {"--context", "workload.context_tokens"},
                                     {"--block-size", "kv_cache.block_size"},
                                     {"--kv-cache-dtype", "kv_cache.dtype"},
                                     {"--tp", "deployment.tensor_parallel_size"},
                                     {"--tensor-parallel-size", "deployment.tensor_parallel_size"},
                                     {"--pipeline-parallel-size", "deployment.pipeline_parallel_size"},
                                     {"--data-parallel-size", "deployment.data_parallel_size"},
                                     {"--max-concurrency", "workload.max_concurrency"},
                                     {"--concurrency", "workload.max_concurrency"},
                                     {"--max-num-seqs", "engine.max_num_seqs"},
                                     {"--max-num-batched-tokens", "engine.max_num_batched_tokens"},
                                     {"--gpu-memory-utilization", "engine.gpu_memory_utilization"},
                                     {"--enable-prefix-caching", "engine.enable_prefix_caching"}};

// Names of other programs for which a command has something of another shape; where `beside` is named, it was given.
struct OtherShape {
  std::string_view theirs, command, beside, advice;
};
constexpr std::string_view kLengths = "requests have --prompt-tokens and --output-tokens; give these.";
constexpr std::string_view kStepOrLengths =
    "requests have --prompt-tokens and --output-tokens, a step has --set workload.context_tokens=VALUE.";
constexpr std::string_view kLongest =
    "the longest context is the model's; write --set model.max_position_embeddings=VALUE to change it.";
constexpr std::string_view kChosenDevices = "with --devices it is chosen; leave it out, or give no --devices.";
constexpr OtherShape kOtherShapes[] = {{"--context", "recommend", "", kLengths},
                                       {"--context", "simulate", "", kLengths},
                                       {"--context", "study", "", kStepOrLengths},
                                       {"--max-model-len", "predict", "", kLongest},
                                       {"--max-model-len", "recommend", "", kLongest},
                                       {"--max-model-len", "simulate", "", kLongest},
                                       {"--max-model-len", "study", "", kLongest},
                                       {"--tp", "recommend", "--devices", kChosenDevices},
                                       {"--pipeline-parallel-size", "recommend", "--devices", kChosenDevices},
                                       {"--data-parallel-size", "recommend", "--devices", kChosenDevices}};

// Empty where there is none.
[[nodiscard]] std::string advice_for(const CLI::App& command, const std::string& option) {
  for (const auto& [theirs, name, beside, advice] : kOtherShapes) {
    if (theirs != option || name != command.get_name()) continue;
    if (beside.empty() || command.count(std::string(beside)) > 0) return std::string(advice);
  }
  return {};
}

// "did you mean '--devices'?", "write --set engine.max_num_seqs=VALUE."; empty where the command has neither.
[[nodiscard]] std::string by_other_name(const std::vector<std::string>& known, const std::string& option) {
  const auto has = [&known](std::string_view name) { return std::ranges::find(known, name) != known.end(); };
  for (const auto& [theirs, ours] : kOtherNames) {
    if (theirs != option) continue;
    if (has(ours)) return "did you mean " + in_quotes(ours) + "?";
    if (!ours.starts_with('-') && has("--set")) return "write --set " + std::string(ours) + "=VALUE.";
  }
  return {};
}

// "did you mean '--context'?"; of an option that only other commands have, which do.
[[nodiscard]] std::string meant(const CLI::App& app, const CLI::App& command, const std::string& argument) {
  if (!is_option(argument)) return suggestion(argument, command_names(command));
  const std::string word = argument.substr(std::min(argument.find_first_not_of('-'), argument.size()));
  const std::string option = "--" + word.substr(0, word.find('='));
  const std::vector<std::string> known = option_names(command);
  if (std::ranges::find(known, option) != known.end()) return "did you mean " + in_quotes(option) + "?";
  if (std::string advice = advice_for(command, option); !advice.empty()) return advice;
  if (std::string ours = by_other_name(known, option); !ours.empty()) return ours;
  std::string others;
  for (const std::string& name : command_names(app))
    if (const auto names = option_names(*app.get_subcommand(name)); std::ranges::find(names, option) != names.end())
      others += (others.empty() ? "" : ", ") + name;
  if (!others.empty()) return "it is an option of " + others + ".";
  return suggestion(option, known);
}

// Of what is left of the command line: the command's name where none is known, the first option, or the first word.
[[nodiscard]] std::string explain_unknown(const CLI::App& app, const std::vector<std::string>& unknown) {
  std::string text = "not known here:";
  for (const std::string& argument : unknown) text += " " + argument;
  const CLI::App& command = named_command(app);
  const auto word = std::ranges::find_if_not(unknown, is_option);
  if (&command == &app && word != unknown.end()) return unknown_command(app, *word);
  const auto option = std::ranges::find_if(unknown, is_option);
  const std::string guess = meant(app, command, option == unknown.end() ? unknown.front() : *option);
  return shortened(text, kLongestReason) + (guess.empty() ? "; see " : "; " + guess + " See ") + full_name(command) +
         " --help";
}

// CLI11 says "Could not convert: --batch = 1e3".
[[nodiscard]] std::string explain_conversion(const CLI::App& command, const std::string& what) {
  constexpr std::string_view kBegin = "Could not convert: ", kBetween = " = ";
  const std::size_t between = what.find(kBetween);
  if (!what.starts_with(kBegin) || between == std::string::npos) return what;
  const std::string name = what.substr(kBegin.size(), between - kBegin.size());
  const std::string value = what.substr(between + kBetween.size());
  const CLI::Option* option = command.get_option_no_throw(name);
  if (option == nullptr) return what;
  const bool is_whole = option->get_type_name().starts_with("INT") || option->get_type_name().starts_with("UINT");
  const std::string number = is_whole ? whole_number_meant(value) : "";
  if (number == value) return name + ": " + value + " is too large";
  return name + ": " + in_quotes(value) + (is_whole ? " is not a whole number" : " is not a number") +
         (number.empty() ? "" : "; write " + number);
}

// "--phase: deocde not in {prefill,decode}"
[[nodiscard]] std::string explain_word(const std::string& what) {
  constexpr std::string_view kAfterName = ": ", kBetween = " not in {";
  const std::size_t name_end = what.find(kAfterName), between = what.find(kBetween);
  if (name_end == std::string::npos || between == std::string::npos || between < name_end || !what.ends_with('}'))
    return what;
  const std::size_t begin = name_end + kAfterName.size();
  const std::string value = what.substr(begin, between - begin);
  std::vector<std::string> words(1);
  for (const char letter : what.substr(between + kBetween.size(), what.size() - between - kBetween.size() - 1))
    if (letter == ',')
      words.emplace_back();
    else
      words.back() += letter;
  std::string guess = suggestion(value, words), all;
  for (const std::string& word : words) all += (all.empty() ? "use one of " : ", ") + word;
  return what.substr(0, begin) + in_quotes(value) + " is not known; " + (guess.empty() ? all : guess);
}

// "--batch: 1 required INT missing", "--machine: At Most 1 required but received 2"
[[nodiscard]] std::string explain_count(const std::string& what) {
  const std::string name = what.substr(0, what.find(": "));
  if (what.ends_with(" missing")) return name + " needs a value";
  return what.find(": At Most 1 required") == std::string::npos ? what : name + " is given several times; give it once";
}

// "what is required": arguments without a name are described.
[[nodiscard]] std::string explain_missing(const CLI::App& command, const std::string& what) {
  constexpr std::string_view kEnd = " is required";
  if (is_option(what) || !what.ends_with(kEnd)) return what;
  const std::string name = what.substr(0, what.size() - kEnd.size());
  const CLI::Option* argument = command.get_option_no_throw(name);
  return argument == nullptr ? what : name + " is missing: " + argument->get_description();
}

[[nodiscard]] std::string explain_known(const CLI::App& command, const CLI::ParseError& error) {
  const std::string what = error.what();
  if (error.get_name() == "ConversionError") return explain_conversion(command, what);
  if (error.get_name() == "ValidationError") return explain_word(what);
  if (error.get_name() == "ArgumentMismatch") return explain_count(what);
  if (!what.starts_with("A subcommand is required")) return explain_missing(command, what);
  std::string names;
  for (const std::string& name : command_names(command)) names += (names.empty() ? "name one of " : ", ") + name;
  return names;
}

}  // namespace

const CLI::App& named_command(const CLI::App& app) {
  const auto is_named = [](const CLI::App* each) { return each->parsed() && !each->get_name().empty(); };
  const std::vector<const CLI::App*> named = app.get_subcommands(is_named);
  return named.empty() ? app : named_command(*named.front());
}

std::string full_name(const CLI::App& command) {
  const std::string above = command.get_parent() == nullptr ? "" : full_name(*command.get_parent());
  return above + (above.empty() || command.get_name().empty() ? "" : " ") + command.get_name();
}

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  const auto found = app.get_subcommands([&name](const CLI::App* each) { return each->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

std::string unknown_command(const CLI::App& app, const std::string& name) {
  const std::string guess = suggestion(name, command_names(app));
  const std::string of = app.get_parent() == nullptr ? "" : " of " + full_name(app);
  return "no command " + in_quotes(name) + of + "; " + (guess.empty() ? "see " : guess + " See ") + full_name(app) +
         " --help";
}

bool names_unknown_command(const CLI::App& app) {
  const std::vector<std::string> unknown = app.remaining(true);
  return app.get_subcommands().empty() && !unknown.empty() && !unknown.front().starts_with('-');
}

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = named_command(app);
  const std::string name = full_name(command);
  // A misspelt option is named first: what it was to set then seems to be missing too.
  if (const std::vector<std::string> unknown = app.remaining(true); !unknown.empty())
    return name + ": " + explain_unknown(app, unknown);
  const std::string text = name + ": " + shortened(explain_known(command, error), kLongestReason);
  return text + (text.ends_with('?') ? " See " : "; see ") + name + " --help";
}

}  // namespace dculab::cli
