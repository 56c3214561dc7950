#include "config/trace_file.hpp"

#include <algorithm>
#include <array>

#include "config/map_reader.hpp"
#include "config/step_words.hpp"
#include "config/trace_model.hpp"
#include "config/weight_format_text.hpp"
#include "core/kv/figures.hpp"
#include "fields/json_text.hpp"
#include "files/input.hpp"
#include "model/plan_step.hpp"

namespace dculab::config {
namespace {

constexpr std::size_t kLargestTrace = std::size_t{1} << 30;
constexpr double kLargestCount = 1 << 24;
constexpr std::size_t kMostSequences = 1 << 16;              // of a step
constexpr std::size_t kMostSequencesInAll = 1 << 23;         // each takes memory, a run of equal ones is one line
constexpr std::size_t kMostLayersInAll = 1 << 28;            // likewise
constexpr double kShortestStep = 1e-18, kLongestStep = 1e6;  // seconds

constexpr auto kSchemas = std::to_array<Choice<TraceSchema>>(
    {{kTraceSchema, TraceSchema::layer_kinds}, {"dculab/trace/1", TraceSchema::one_kind}});

void read_seconds(MapReader& reader, std::string_view key, Seconds& target, Bounds bounds) {
  double value = 0;
  reader.required(key, value, bounds);
  target = Seconds(value);
}

void read_weights(MapReader& reader, WeightFormat& weights) {
  std::string text;
  reader.required("weights", text);
  try {
    if (!text.empty()) weights = parse_weight_format(text);
  } catch (const InputError& error) {
    reader.complain(*reader.node(), reader.path_to("weights") + ": " + error.what());
  }
}

// Older traces also say what the kernels did that was nobody's choice.
void read_split(MapReader reader, AttentionSplit& split) {
  int ignored = 0;
  for (const char* key : {"matmul_rows", "matmul_columns", "prefill_query_tokens"})
    reader.optional(key, ignored, between(1, kLargestCount));
  reader.required("partition_tokens", split.partition_tokens, between(0, kLargestCount));
  reader.required("query_heads_per_workgroup", split.query_heads_per_workgroup, between(0, 1024));
  reader.finish();
}

// What the policy takes must stand there.
void read_retention(MapReader reader, KvRetention& retention) {
  reader.required("policy", retention.policy, kRetentionPolicies);
  for (const KvFigure& figure : kKvFigures) {
    const bool is_needed = kv_policy(retention.policy).*figure.counts;
    if (is_needed) (void)reader.required(figure.name);
    if (figure.share != nullptr)
      reader.optional(figure.name, retention.*figure.share, fraction());
    else
      reader.optional(figure.name, retention.*figure.count, between(is_needed ? 1 : 0, kLargestCount));
  }
  reader.finish();
}

void read_expert_load(MapReader reader, ExpertLoad& load) {
  reader.optional("zipf_exponent", load.zipf_exponent, between(0, kLargestCount));
  if (const Node* node = reader.optional("histogram")) reader.read(*node, load.histogram, at_least(0));
  reader.finish();
}

void read_options(MapReader reader, EngineOptions& options) {
  reader.required("block_size", options.block_size, between(1, 256));
  reader.required("kv_cache_dtype", options.kv_cache_dtype);
  reader.optional("kv_residual_tokens", options.kv_residual_tokens, between(32, 128));
  read_weights(reader, options.weights);
  reader.required("activation_dtype", options.activation_dtype);
  reader.optional("activations", options.activations, kActivationModes);
  reader.required("max_num_seqs", options.max_num_seqs, between(1, kLargestCount));
  reader.required("max_num_batched_tokens", options.max_num_batched_tokens, between(1, kLargestCount));
  reader.required("enable_chunked_prefill", options.enable_chunked_prefill);
  reader.required("gpu_memory_utilization", options.gpu_memory_utilization, fraction());
  read_split(reader.required_map("tiling"), options.attention_split);
  if (reader.optional("kv_retention") != nullptr)
    read_retention(reader.optional_map("kv_retention"), options.kv_retention);
  if (reader.optional("expert_load") != nullptr)
    read_expert_load(reader.optional_map("expert_load"), options.expert_load);
  reader.finish();
}

// Older traces say only whether the last new token's logits were computed.
void read_num_logits(MapReader& reader, SequenceSlice& slice) {
  if (reader.optional("needs_logits") == nullptr)
    return reader.required("num_logits", slice.num_logits, between(0, slice.num_new_tokens));
  bool needs_logits = true;
  reader.required("needs_logits", needs_logits);
  slice.num_logits = needs_logits ? 1 : 0;
}

// A run of equal slices.
void read_run(MapReader reader, Batch& batch) {
  SequenceSlice slice;
  int count = 0;
  reader.required("count", count, between(1, kMostSequences));
  reader.required("phase", slice.phase, kPhases);
  reader.required("num_computed_tokens", slice.num_computed_tokens, between(0, kLargestCount));
  reader.required("num_new_tokens", slice.num_new_tokens, between(1, kLargestCount));
  read_num_logits(reader, slice);
  reader.optional("num_evicted_tokens", slice.num_evicted_tokens, between(0, kLargestCount));
  reader.optional("num_newly_evicted_tokens", slice.num_newly_evicted_tokens, between(0, kLargestCount));
  reader.optional("num_unwritten_tokens", slice.num_unwritten_tokens, between(0, kLargestCount));
  reader.optional("num_draft_tokens", slice.num_draft_tokens, between(0, slice.num_new_tokens));
  reader.optional("num_tree_tokens", slice.num_tree_tokens, between(0, kMostDraftTokens + 1));
  if (slice.num_tree_tokens > 0 && (slice.phase == Phase::prefill || slice.num_tree_tokens < slice.num_new_tokens ||
                                    slice.num_tree_tokens > slice.context_tokens()))
    reader.complain(*reader.node(), "num_tree_tokens: must be of a decode, and from its new tokens to its context");
  reader.finish();
  if (batch.sequences.size() + static_cast<std::size_t>(count) > kMostSequences)
    return reader.complain(*reader.node(), "batch: more than " + std::to_string(kMostSequences) + " sequences");
  for (int index = 0; index < count; ++index) {
    slice.id = static_cast<SequenceId>(batch.sequences.size());
    batch.sequences.push_back(slice);
  }
}

void read_batch(MapReader& reader, Batch& batch) {
  const Node* runs = reader.required("batch");
  if (runs == nullptr) return;
  if (runs->kind != NodeKind::list || runs->children.empty())
    return reader.complain(*runs, "batch: must be a list of runs of equal sequences");
  for (const Node& run : runs->children) read_run(MapReader(&run, "batch", reader.problems()), batch);
}

void read_ops(MapReader& reader, TraceStep& step) {
  const Node* ops = reader.required("ops");
  if (ops == nullptr) return;
  if (ops->kind != NodeKind::list) return reader.complain(*ops, "ops: must be a list of {name, seconds}");
  for (const Node& op : ops->children) {
    MapReader fields(&op, "ops", reader.problems());
    fields.required("name", step.op_names.emplace_back());
    read_seconds(fields, "seconds", step.op_durations.emplace_back(), between(0, kLongestStep));
    fields.finish();
  }
}

// Pairs of how many were tested and accepted.
void read_places(MapReader& reader, std::string_view key, std::vector<DraftCounts::Place>& places) {
  const Node* list = reader.required(key);
  if (list == nullptr) return;
  const auto complain = [&] { reader.complain(*list, std::string(key) + ": must be pairs of [tested, accepted]"); };
  if (list->kind != NodeKind::list) return complain();
  for (const Node& pair : list->children) {
    if (pair.kind != NodeKind::list || pair.children.size() != 2) return complain();
    int tested = 0, accepted = 0;
    reader.read(pair.children[0], tested, between(0, kLargestCount));
    reader.read(pair.children[1], accepted, between(0, kLargestCount));
    if (accepted > tested) return complain();
    places.push_back({.tested = tested, .accepted = accepted});
  }
}

void read_drafts(MapReader reader, DraftCounts& drafts) {
  const auto read_count = [&reader](std::string_view key, std::int64_t& count) {
    int value = 0;
    reader.required(key, value, between(0, kLargestCount));
    count = value;
  };
  read_count("drafts", drafts.num_drafts);
  read_count("draft_tokens", drafts.num_draft_tokens);
  read_count("accepted_tokens", drafts.num_accepted_tokens);
  read_places(reader, "by_position", drafts.by_depth);
  read_places(reader, "by_rank", drafts.by_rank);
  reader.finish();
}

// The ops follow from the step; a step may leave all of them out.
void check_ops(const Node& node, const TraceStep& step, ProblemList& list) {
  if (step.op_names.empty()) return;
  const StepPlan plan = plan_step(step.model, step.options, step.batch);
  const auto same = [](const Op& op, const std::string& name) { return op.name == name; };
  if (std::ranges::equal(plan.ops, step.op_names, same)) return;
  std::string names;
  for (const Op& op : plan.ops) names += (names.empty() ? "" : ", ") + std::string(op.name);
  list.add(node, "ops: must be those that the step runs, in order: " + names + "; or none");
}

TraceStep read_step(const Node& node, TraceSchema schema, ProblemList& list) {
  TraceStep step;
  MapReader reader(&node, "", list);
  reader.required("id", step.id);
  read_trace_model(reader.required_map("model"), schema, step.model);
  read_options(reader.required_map("options"), step.options);
  read_batch(reader, step.batch);
  read_seconds(reader, "seconds", step.duration, between(kShortestStep, kLongestStep));
  read_seconds(reader, "spread_seconds", step.spread, between(0, kLongestStep));
  reader.required("repeats", step.repeats, at_least(1));
  reader.optional("cold_share", step.batch.cold_share, between(0, 1));
  if (reader.optional("drafts") != nullptr) read_drafts(reader.optional_map("drafts"), step.drafts);
  if (reader.optional("drafting_seconds") != nullptr)
    read_seconds(reader, "drafting_seconds", step.drafting, between(0, kLongestStep));
  read_ops(reader, step);
  reader.finish();
  if (!list.empty()) return step;
  for (const std::string& problem : problems(step.model)) list.add(node, "model: " + problem);
  for (const std::string& problem : problems(step.options)) list.add(node, "options: " + problem);
  if (list.empty())
    for (const std::string& problem : problems(step.options, step.model)) list.add(node, "options: " + problem);
  if (list.empty()) check_ops(node, step, list);
  return step;
}

// A header's texts may be empty: not everybody knows all of them.
void read_text(MapReader& reader, std::string_view key, std::string& target) {
  const Node* node = reader.required(key);
  if (node != nullptr && node->kind == NodeKind::scalar && node->text.empty()) return;
  if (node != nullptr) reader.read(*node, target);
}

TraceHeader read_header(const Node& node, TraceSchema& schema, ProblemList& list) {
  TraceHeader header;
  MapReader reader(&node, "", list);
  reader.required("schema", schema, kSchemas);
  reader.required("machine", header.machine);
  read_text(reader, "device", header.device);
  read_text(reader, "build", header.build);
  reader.required("threads", header.threads, between(0, kLargestCount));
  read_text(reader, "timing", header.timing);
  read_text(reader, "created", header.created);
  reader.finish();
  return header;
}

}  // namespace

Trace read_trace(const std::string& file, const std::string& text) {
  ProblemList list(file);
  Trace trace;
  bool has_header = false;
  TraceSchema schema{};
  int line = 0;
  std::size_t sequences = 0, layers = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string record = text.substr(begin, end - begin);
    begin = end + 1;
    ++line;
    if (record.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Node node = parse_json(file, line, record);
    if (has_header) {
      trace.steps.push_back(read_step(node, schema, list));
      sequences += trace.steps.back().batch.sequences.size();
      layers += trace.steps.back().model.layers.size();
      if (layers > kMostLayersInAll)
        throw InputError(
            file, line,
            "its steps have more than " + std::to_string(kMostLayersInAll) + " layers up to here; split the trace");
      if (sequences > kMostSequencesInAll)
        throw InputError(file, line,
                         "its steps have more than " + std::to_string(kMostSequencesInAll) +
                             " sequences up to here; split the trace");
    } else {
      trace.header = read_header(node, schema, list);
      list.throw_if_any();  // not a trace: its lines would all be wrong
      has_header = true;
    }
  }
  if (!has_header) throw InputError(file, "is empty; a trace begins with a header line");
  list.throw_if_any();
  return trace;
}

Trace read_trace_file(const std::string& path) {
  return read_trace(path, files::read_text_or_pipe(path, kLargestTrace));
}

}  // namespace dculab::config
