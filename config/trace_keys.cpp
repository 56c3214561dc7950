#include "config/trace_keys.hpp"

#include <optional>

#include "config/key_writer.hpp"
#include "config/weight_format_text.hpp"

namespace dculab::config {

using Json = nlohmann::ordered_json;

void ignore_count(MapReader& reader, const Node& node, AttentionSplit& /*split*/) {
  int ignored = 0;
  reader.read(node, ignored, between(1, kLargestCount));
}

void RetentionKeys::check(MapReader& reader, KvRetention& retention) {
  for (const KvFigure& figure : kKvFigures)
    if (kv_policy(retention.policy).*figure.counts) (void)reader.required(figure.name);
}

void read_weights(MapReader& reader, const Node& node, EngineOptions& options) {
  std::string text;
  reader.read(node, text);
  if (text.empty()) return;
  try {
    options.weights = parse_weight_format(text);
  } catch (const InputError& error) {
    reader.complain(*reader.node(), reader.path_to("weights") + ": " + error.what());
  }
}

Json write_weights(const EngineOptions& options) { return weight_format_text(options.weights); }

void read_needs_logits(MapReader& reader, const Node& node, Run& run) {
  bool needs_logits = true;
  reader.read(node, needs_logits);
  run.slice.num_logits = needs_logits ? 1 : 0;
}

void read_num_logits(MapReader& reader, const Node& node, Run& run) {
  reader.read(node, run.slice.num_logits, between(0, run.slice.num_new_tokens));
}

Json write_num_logits(const Run& run) { return run.slice.num_logits; }

void RunKeys::check(MapReader& reader, Run& run) {
  const Node* older = reader.optional("needs_logits");
  if (older == nullptr) (void)reader.required("num_logits");
  if (older != nullptr && reader.optional("num_logits") != nullptr)
    reader.complain(*older, "batch.needs_logits: excludes num_logits");
  const SequenceSlice& slice = run.slice;
  const Node& node = *reader.node();
  if (slice.num_draft_tokens > slice.num_new_tokens)
    reader.complain(node, "batch.num_draft_tokens: is more than num_new_tokens");
  if (slice.num_tree_tokens > 0 && (slice.phase == Phase::prefill || slice.num_tree_tokens < slice.num_new_tokens ||
                                    slice.num_tree_tokens > slice.context_tokens()))
    reader.complain(node, "batch.num_tree_tokens: must be of a decode, and from its new tokens to its context");
}

std::vector<DraftCounts::Place> places_of(MapReader& reader, const Node& node) {
  std::vector<DraftCounts::Place> places;
  const auto refuse = [&] {
    reader.complain(node, node.key + ": must be pairs of [tested, accepted]");
    return std::vector<DraftCounts::Place>();
  };
  if (node.kind != NodeKind::list) return refuse();
  for (const Node& pair : node.children) {
    std::vector<int> counts;
    if (pair.kind == NodeKind::list) reader.read(pair, counts, between(0, kLargestCount));
    if (counts.size() != 2 || counts[1] > counts[0]) return refuse();
    places.push_back({.tested = counts[0], .accepted = counts[1]});
  }
  return places;
}

Json places_json(const std::vector<DraftCounts::Place>& places) {
  Json json = Json::array();
  for (const DraftCounts::Place& place : places) json.push_back(Json::array({place.tested, place.accepted}));
  return json;
}

void read_batch(MapReader& reader, const Node& node, TraceStep& step) {
  if (node.kind != NodeKind::list || node.children.empty())
    return reader.complain(node, "batch: must be a list of runs of equal sequences");
  std::vector<SequenceSlice>& sequences = step.batch.sequences;
  for (const Node& child : node.children) {
    Run run;
    read_section<RunKeys>(MapReader(&child, "batch", reader.problems()), run);
    if (sequences.size() + static_cast<std::size_t>(run.count) > kMostSequences)
      return reader.complain(child, "batch: more than " + std::to_string(kMostSequences) + " sequences");
    for (int index = 0; index < run.count; ++index) {
      run.slice.id = static_cast<SequenceId>(sequences.size());
      sequences.push_back(run.slice);
    }
  }
}

Json write_batch(const TraceStep& step) {
  Json runs = Json::array();
  std::optional<Run> run;
  const auto end_run = [&] {
    if (run) runs.push_back(json_of<RunKeys>(*run));
  };
  for (SequenceSlice slice : step.batch.sequences) {
    slice.id = 0;
    if (!run || slice != run->slice) {
      end_run();
      run = Run{.slice = slice};
    }
    ++run->count;
  }
  end_run();
  return runs;
}

void read_ops(MapReader& reader, const Node& node, TraceStep& step) {
  if (node.kind != NodeKind::list) return reader.complain(node, "ops: must be a list of {name, seconds}");
  for (const Node& child : node.children) {
    OpTime op;
    read_section<OpKeys>(MapReader(&child, "ops", reader.problems()), op);
    step.op_names.push_back(std::move(op.name));
    step.op_durations.push_back(op.duration);
  }
}

Json write_ops(const TraceStep& step) {
  Json ops = Json::array();
  for (std::size_t index = 0; index < step.op_names.size(); ++index)
    ops.push_back(json_of<OpKeys>({step.op_names[index], step.op_durations[index]}));
  return ops;
}

}  // namespace dculab::config
