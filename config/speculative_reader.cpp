#include "config/speculative_reader.hpp"

#include <array>
#include <utility>

#include "config/draft_shape_text.hpp"
#include "config/key_description.hpp"
#include "config/weight_format_text.hpp"

namespace dculab::config {
namespace {

constexpr auto kSpeculativeMethods =
    std::to_array<Choice<SpeculativeMethod>>({{"draft_model", SpeculativeMethod::draft_model},
                                              {"ngram", SpeculativeMethod::ngram},
                                              {"medusa", SpeculativeMethod::medusa},
                                              {"mtp", SpeculativeMethod::mtp}});
constexpr auto kRejectionMethods =
    std::to_array<Choice<RejectionSampleMethod>>({{"strict", RejectionSampleMethod::strict},
                                                  {"typical", RejectionSampleMethod::typical},
                                                  {"synthetic", RejectionSampleMethod::synthetic}});
constexpr int kLongestLookUp = 1024;
constexpr Bounds kDraftTokens = between(0, kMostDraftTokens);

void read_draft_tree(MapReader& reader, const Node& node, DraftShape& shape) {
  std::string text;
  reader.read(node, text);
  if (text.empty()) return;
  try {
    shape = parse_draft_shape_text(text);
  } catch (const InputError& error) {
    reader.complain(node, reader.path() + "." + error.what());
  }
}

// What is drafted: a chain, or a tree. False when nothing is.
[[nodiscard]] bool read_draft_shape(MapReader& reader, DraftShape& shape) {
  const Node* tokens = reader.optional("num_speculative_tokens");
  const Node* tree = reader.optional("speculative_token_tree");
  int depth = -1;
  if (tokens != nullptr) reader.read(*tokens, depth, kDraftTokens);
  if (tokens == nullptr && tree == nullptr)
    reader.complain(*reader.node(),
                    reader.path_to("num_speculative_tokens") + ": missing; add it, or a speculative_token_tree");
  if (tree != nullptr) {
    read_draft_tree(reader, *tree, shape);
    if (depth >= 0 && shape.num_tokens() > 0 && shape.depth() != depth)
      reader.complain(*tokens, reader.path_to("num_speculative_tokens") + ": " + std::to_string(depth) +
                                   ", but the tree is " + std::to_string(shape.depth()) +
                                   " deep; leave one of them out");
  } else if (depth >= 0) {
    shape = chain_shape(depth);
  }
  return depth != 0;
}

void read_acceptance_rates(MapReader& reader, const Node& node, std::vector<double>& rates) {
  if (node.kind == NodeKind::list) return reader.read(node, rates, between(0, 1));
  double rate = 0;
  reader.read(node, rate, between(0, 1));
  rates = {rate};
}

// {by_position: 0.6, by_rank: [0.6, 0.3]} or {from_trace: FILE}.
struct AcceptanceKeys {
  using Target = SpeculationChoice;
  static constexpr Shape kRates{.is_number = true, .may_be_list = true};
  static constexpr KeyTraits kRate{.bounds = between(0, 1), .unit = unit::share};
  static void read_positions(MapReader& reader, const Node& node, SpeculationChoice& choice) {
    read_acceptance_rates(reader, node, choice.acceptance.by_depth);
  }
  static void read_ranks(MapReader& reader, const Node& node, SpeculationChoice& choice) {
    read_acceptance_rates(reader, node, choice.acceptance.by_rank);
  }
  static constexpr auto keys = std::tuple(
      shaped("by_position", &read_positions, kRates,
             "rates of the most probable guess at each position, the last for all later ones", kRate),
      shaped("by_rank", &read_ranks, kRates,
             "for trees: the rate of the most probable guess for a position, of the second if the first was rejected, "
             "...",
             kRate),
      value("from_trace", &SpeculationChoice::trace, "instead, a trace of a run with drafts: its counts"));

  static void check(MapReader& reader, SpeculationChoice& choice) {
    const bool has_rates = reader.optional("by_position") != nullptr || reader.optional("by_rank") != nullptr;
    if (choice.trace.empty() && !has_rates)
      reader.complain(*reader.node(), reader.path() + ": says nothing; give it by_position, by_rank or from_trace");
    if (!choice.trace.empty() && has_rates)
      reader.complain(*reader.node(), reader.path() + ": a trace has its own rates; leave by_position and by_rank out");
  }
};

// 0.8, [0.9, 0.8], or a map.
void read_acceptance(MapReader& reader, const Node& node, SpeculationChoice& choice) {
  if (node.kind != NodeKind::map) return read_acceptance_rates(reader, node, choice.acceptance.by_depth);
  read_section<AcceptanceKeys>(MapReader(&node, reader.path_to("acceptance"), reader.problems()), choice);
}

void read_synthetic_rates(MapReader& reader, const Node& node, SpeculativeConfig& config) {
  read_acceptance_rates(reader, node, config.synthetic_acceptance_rates);
}

// What drafts, beside what is drafted.
struct DrafterKeys {
  using Target = SpeculationChoice;
  static constexpr auto keys = std::tuple(
      value("model", &SpeculationChoice::model,
            "with `draft_model`: like the scenario's `model`, whose vocabulary it needs. The same devices share it",
            {.absent = "needed with `draft_model`"}),
      shaped<AcceptanceKeys>(
          "acceptance", &read_acceptance, {.is_number = true, .may_be_list = true},
          "how often a tested guess is accepted: one number for all; a list by position, whose last "
          "entry applies to all later positions; or a map",
          {.bounds = between(0, 1), .unit = unit::share, .absent = "needed to predict or simulate"}));
};

struct SpeculativeKeys {
  using Target = SpeculativeConfig;
  static constexpr KeyTraits kLookUp{.bounds = between(1, kLongestLookUp), .unit = unit::tokens};
  static constexpr KeyTraits kProbability{.bounds = between(0, 1), .unit = unit::share};
  static constexpr auto keys = std::tuple(
      word("method", &SpeculativeConfig::method, kSpeculativeMethods,
           "a smaller model, vLLM's prompt look-up, Medusa's heads or the model's own layer for multi-token prediction",
           {.necessity = Necessity::required}),
      value("prompt_lookup_min", &SpeculativeConfig::prompt_lookup_min,
            "with `ngram`: how many of the last tokens must have occurred before. A simulation ignores it", kLookUp),
      value("prompt_lookup_max", &SpeculativeConfig::prompt_lookup_max, "the most of them that are looked up", kLookUp),
      word("rejection_sample_method", &SpeculativeConfig::rejection_sample_method, kRejectionMethods,
           "for the engine: a simulation uses the rates below with any method"),
      value("posterior_threshold", &SpeculativeConfig::posterior_threshold, "with `typical` (Medusa's)", kProbability),
      value("posterior_alpha", &SpeculativeConfig::posterior_alpha, "with `typical` (Medusa's)", kProbability),
      shaped(
          "synthetic_acceptance_rates", &read_synthetic_rates, {.is_number = true, .may_be_list = true},
          "with `synthetic`: a rate for each position, conditional on the acceptance of all tokens before; also used "
          "by the simulation",
          kProbability));
};

void check_speculation(MapReader& reader, const SpeculativeConfig& config, const SpeculationChoice& choice) {
  const bool has_model = !choice.model.empty(), needs_model = config.method == SpeculativeMethod::draft_model;
  if (needs_model && !has_model)
    reader.complain(*reader.node(), reader.path_to("model") + ": missing; name the model that drafts");
  if (!needs_model && has_model)
    reader.complain(*reader.optional("model"), reader.path_to("model") + ": method " +
                                                   std::string(name(config.method)) +
                                                   " drafts without a model of its own; remove it");
  for (const std::string& problem : problems(config)) reader.complain(*reader.node(), reader.path() + ": " + problem);
}

}  // namespace

void read_speculative_config(MapReader reader, SpeculativeConfig& config, SpeculationChoice& choice) {
  if (!reader.is_present()) return;
  SpeculativeConfig read;
  read_keys<SpeculativeKeys>(reader, read);
  read_keys<DrafterKeys>(reader, choice);
  read_weights(reader, choice.weights);
  const bool drafts = read_draft_shape(reader, read.shape);
  if (reader.problems().empty() && drafts) check_speculation(reader, read, choice);
  reader.finish();
  const bool has_rates = !choice.acceptance.by_depth.empty() || !choice.acceptance.by_rank.empty();
  if (!has_rates && choice.trace.empty()) choice.acceptance.by_depth = read.synthetic_acceptance_rates;
  if (drafts) config = read;
}

std::vector<FileKey> speculative_config_keys() {
  std::vector<FileKey> keys = keys_of<SpeculativeKeys>();
  for (FileKey& key : keys_of<DrafterKeys>()) keys.push_back(std::move(key));
  keys.push_back(weights_key("of the draft model, like `weights`"));
  FileKey& tokens = keys.emplace_back(FileKey{.key = "num_speculative_tokens"});
  tokens.meaning = "tokens of a chain; 0 drafts nothing, for comparison in a sweep. With a tree, its depth";
  tokens.absent = "needed without a tree";
  tokens.values = {{.kind = ValueKind::whole, .bounds = kDraftTokens, .unit = std::string(unit::tokens)}};
  FileKey& tree = keys.emplace_back(FileKey{.key = "speculative_token_tree"});
  tree.meaning =
      "guesses at each level, `4x2x1`: the four most probable next tokens, two after each, one after each of these; or "
      "vLLM's text, a list of paths: `\"[(0,), (1,), (0, 0)]\"`, up to 63 guesses";
  tree.absent = "a chain";
  tree.values = {{.kind = ValueKind::text}};
  return keys;
}

}  // namespace dculab::config
