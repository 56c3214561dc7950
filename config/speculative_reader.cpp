#include "config/speculative_reader.hpp"

#include <array>

#include "config/draft_shape_text.hpp"
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
  if (tokens != nullptr) reader.read(*tokens, depth, between(0, kMostDraftTokens));
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

// 0.8, [0.9, 0.8], {by_position: 0.6, by_rank: [0.6, 0.3]} or {from_trace: FILE}.
void read_acceptance(MapReader& reader, SpeculationChoice& choice) {
  const Node* node = reader.optional("acceptance");
  if (node == nullptr) return;
  if (node->kind != NodeKind::map) return read_acceptance_rates(reader, *node, choice.acceptance.by_depth);
  MapReader fields(node, reader.path_to("acceptance"), reader.problems());
  const Node* positions = fields.optional("by_position");
  const Node* ranks = fields.optional("by_rank");
  if (positions != nullptr) read_acceptance_rates(fields, *positions, choice.acceptance.by_depth);
  if (ranks != nullptr) read_acceptance_rates(fields, *ranks, choice.acceptance.by_rank);
  fields.optional("from_trace", choice.trace);
  if (choice.trace.empty() && positions == nullptr && ranks == nullptr)
    fields.complain(*node, fields.path() + ": says nothing; give it by_position, by_rank or from_trace");
  if (!choice.trace.empty() && (positions != nullptr || ranks != nullptr))
    fields.complain(*node, fields.path() + ": a trace has its own rates; leave by_position and by_rank out");
  fields.finish();
}

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
  reader.required("method", read.method, kSpeculativeMethods);
  reader.optional("model", choice.model);
  read_weights(reader, choice.weights);
  const bool drafts = read_draft_shape(reader, read.shape);
  reader.optional("prompt_lookup_min", read.prompt_lookup_min, between(1, kLongestLookUp));
  reader.optional("prompt_lookup_max", read.prompt_lookup_max, between(1, kLongestLookUp));
  reader.optional("rejection_sample_method", read.rejection_sample_method, kRejectionMethods);
  reader.optional("posterior_threshold", read.posterior_threshold, between(0, 1));
  reader.optional("posterior_alpha", read.posterior_alpha, between(0, 1));
  if (const Node* rates = reader.optional("synthetic_acceptance_rates"))
    read_acceptance_rates(reader, *rates, read.synthetic_acceptance_rates);
  read_acceptance(reader, choice);
  if (reader.problems().empty() && drafts) check_speculation(reader, read, choice);
  reader.finish();
  const bool has_rates = !choice.acceptance.by_depth.empty() || !choice.acceptance.by_rank.empty();
  if (!has_rates && choice.trace.empty()) choice.acceptance.by_depth = read.synthetic_acceptance_rates;
  if (drafts) config = read;
}

}  // namespace dculab::config
