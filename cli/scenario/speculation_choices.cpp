#include "cli/scenario/speculation_choices.hpp"

#include <CLI/CLI.hpp>

#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/step_choices.hpp"
#include "core/error.hpp"
#include "engine/checkpoint/medusa_checkpoint.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

[[nodiscard]] RejectionSampleMethod parse_method(const std::string& text) {
  if (const auto method = parse_rejection_sample_method(text)) return *method;
  throw InputError("'" + text + "' is no way to accept tokens; use strict, typical or synthetic");
}

// A figure that does nothing is a slip.
void refuse_idle(const SpeculationChoices& choices) {
  const SpeculativeConfig defaults;
  const SpeculativeConfig& config = choices.config;
  const auto refuse = [](bool idle, const char* option, const char* without) {
    if (idle) throw InputError(option, std::string("does nothing without ") + without);
  };
  const bool looks_up =
      config.prompt_lookup_min != defaults.prompt_lookup_min || config.prompt_lookup_max != defaults.prompt_lookup_max;
  const bool is_typical = choices.rejection_sample_method == "typical";
  const bool has_posterior =
      config.posterior_threshold != defaults.posterior_threshold || config.posterior_alpha != defaults.posterior_alpha;
  refuse(looks_up && !choices.prompt_lookup, "--prompt-lookup-max, --prompt-lookup-min", "--prompt-lookup");
  refuse(has_posterior && !is_typical, "--posterior-threshold, --posterior-alpha", "--rejection-sample-method typical");
  refuse(!config.synthetic_acceptance_rates.empty() && choices.rejection_sample_method != "synthetic",
         "--synthetic-acceptance-rates", "--rejection-sample-method synthetic");
  if (choices.asked()) return;
  constexpr const char* kDrafter = "--speculative-model, --medusa, --mtp or --prompt-lookup";
  refuse(choices.num_speculative_tokens != 0, "--num-speculative-tokens", kDrafter);
  refuse(!choices.token_tree.empty(), "--speculative-token-tree", kDrafter);
  refuse(choices.rejection_sample_method != "strict", "--rejection-sample-method", kDrafter);
}

[[nodiscard]] SpeculativeMethod method_of(const SpeculationChoices& choices) {
  if (choices.prompt_lookup) return SpeculativeMethod::ngram;
  if (choices.mtp) return SpeculativeMethod::mtp;
  return choices.medusa.empty() ? SpeculativeMethod::draft_model : SpeculativeMethod::medusa;
}

[[nodiscard]] DraftShape default_shape(const SpeculationChoices& choices) {
  if (!choices.medusa.empty()) return engine::read_medusa_shape(study::find_model(choices.medusa));
  return chain_shape(choices.mtp ? kDefaultMtpTokens : kDefaultSpeculativeTokens);
}

[[nodiscard]] DraftShape shape_of(const SpeculationChoices& choices) {
  const int tokens = choices.num_speculative_tokens;
  if (choices.token_tree.empty()) return tokens == 0 ? default_shape(choices) : chain_shape(tokens);
  DraftShape shape = parse_option("--speculative-token-tree", choices.token_tree, parse_draft_shape);
  if (tokens != 0 && tokens != shape.depth())
    throw InputError("--num-speculative-tokens", "is " + std::to_string(tokens) + ", and the tree is " +
                                                     std::to_string(shape.depth()) + " deep; leave it out");
  return shape;
}

}  // namespace

void add_speculation_options(CLI::App& command, SpeculationChoices& choices) {
  SpeculativeConfig& config = choices.config;
  reads(command.add_option("--speculative-model", choices.model,
                           "A smaller model of the same vocabulary drafts tokens: its folder or name"),
        study::try_find_model)
      ->option_text("DIR");
  reads(command.add_option("--medusa", choices.medusa, "Medusa heads draft tokens: their folder"),
        study::try_find_model)
      ->option_text("DIR")
      ->excludes("--speculative-model");
  command.add_flag("--mtp", choices.mtp, "The model's own layer of multi-token prediction drafts (DeepSeek)")
      ->excludes("--speculative-model", "--medusa");
  command.add_flag("--prompt-lookup", choices.prompt_lookup, "Draft what followed the last tokens before (n-grams)")
      ->excludes("--speculative-model", "--medusa", "--mtp");
  command
      .add_option("--num-speculative-tokens", choices.num_speculative_tokens,
                  "Tokens drafted for a step, as a chain; default 4, with --mtp 1")
      ->check(between(1, kMostDraftTokens));
  command
      .add_option("--speculative-token-tree", choices.token_tree,
                  "Draft a tree: paths of ranks, as [(0,), (1,), (0, 0)]")
      ->option_text("TREE");
  command.add_option("--prompt-lookup-max", config.prompt_lookup_max, "Most last tokens that are looked up")
      ->check(at_least(1));
  command.add_option("--prompt-lookup-min", config.prompt_lookup_min, "Fewest last tokens that are looked up")
      ->check(at_least(1));
  command.add_option("--rejection-sample-method", choices.rejection_sample_method,
                     "strict keeps the model's distribution; typical; synthetic, for measurements");
  command
      .add_option("--synthetic-acceptance-rates", config.synthetic_acceptance_rates,
                  "synthetic: share of drafts accepted at each position, given those before")
      ->delimiter(',');
  command
      .add_option("--posterior-threshold", config.posterior_threshold,
                  "typical: probability above which a draft is accepted")
      ->check(CLI::Range(0.0, 1.0));
  command
      .add_option("--posterior-alpha", config.posterior_alpha,
                  "typical: share of exp(-entropy) above which a draft is accepted")
      ->check(CLI::Range(0.0, 1.0));
}

SpeculativeConfig speculative_config(const SpeculationChoices& choices) {
  refuse_idle(choices);
  if (!choices.asked()) return {};
  SpeculativeConfig config = choices.config;
  config.method = method_of(choices);
  config.shape = shape_of(choices);
  config.rejection_sample_method =
      parse_option("--rejection-sample-method", choices.rejection_sample_method, parse_method);
  if (const auto found = problems(config); !found.empty()) throw InputError(found.front());
  return config;
}

void set_speculation(const SpeculationChoices& choices, engine::GeneratorOptions& options) {
  options.engine.speculative_config = speculative_config(choices);
  if (!choices.folder().empty()) options.speculative_model = study::find_model(choices.folder());
}

}  // namespace dculab::cli
