// The keys of a trace: of its header, and of a step. Those of a step's model are in config/trace_model_keys.hpp.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "config/step_words.hpp"
#include "config/trace_file.hpp"
#include "config/trace_model_keys.hpp"
#include "core/kv/figures.hpp"

namespace dculab::config {

inline constexpr double kLargestCount = 1 << 24;
inline constexpr std::size_t kMostSequences = 1 << 16;              // of a step
inline constexpr double kShortestStep = 1e-18, kLongestStep = 1e6;  // seconds
inline constexpr KeyTraits kRequired{.necessity = Necessity::required};
inline constexpr KeyTraits kCounted{.bounds = between(0, kLargestCount)};
inline constexpr KeyTraits kRequiredCount{.bounds = between(0, kLargestCount), .necessity = Necessity::required};

// A text that may be empty: not everybody knows all that a header may say.
template <std::string TraceHeader::*member>
void read_any_text(MapReader& reader, const Node& node, TraceHeader& header) {
  if (node.kind != NodeKind::scalar || !node.text.empty()) reader.read(node, header.*member);
}
template <std::string TraceHeader::*member>
[[nodiscard]] nlohmann::ordered_json write_any_text(const TraceHeader& header) {
  return header.*member;
}

struct HeaderKeys {
  using Target = TraceHeader;
  static constexpr auto keys =
      std::tuple(value("machine", &TraceHeader::machine, "name of the machine description", kRequired),
                 shaped("device", read_any_text<&TraceHeader::device>, write_any_text<&TraceHeader::device>,
                        {.is_text = true}, "what was run on, in words", kRequired),
                 shaped("build", read_any_text<&TraceHeader::build>, write_any_text<&TraceHeader::build>,
                        {.is_text = true}, "compiler, version, kernel target", kRequired),
                 value("threads", &TraceHeader::threads, "worker threads of a CPU", kRequiredCount),
                 shaped("timing", read_any_text<&TraceHeader::timing>, write_any_text<&TraceHeader::timing>,
                        {.is_text = true}, "how time was taken", kRequired),
                 shaped("created", read_any_text<&TraceHeader::created>, write_any_text<&TraceHeader::created>,
                        {.is_text = true}, "when, as ISO 8601", kRequired));
};

// Older traces also record sizes in kernels that no option sets.
void ignore_count(MapReader& reader, const Node& node, AttentionSplit& split);

struct SplitKeys {
  using Target = AttentionSplit;
  static constexpr KeyTraits kIgnored{.bounds = between(1, kLargestCount), .absent = "nothing"};
  static constexpr auto keys = std::tuple(
      value("partition_tokens", &AttentionSplit::partition_tokens,
            "context that one decode workgroup processes; 0 = never split", kRequiredCount),
      value("query_heads_per_workgroup", &AttentionSplit::query_heads_per_workgroup,
            "query heads that share one load of a KV block; 0 = the whole group",
            {.bounds = between(0, 1024), .necessity = Necessity::required}),
      shaped("matmul_rows", ignore_count, {.is_whole = true}, "of older traces; ignored", kIgnored),
      shaped("matmul_columns", ignore_count, {.is_whole = true}, "of older traces; ignored", kIgnored),
      shaped("prefill_query_tokens", ignore_count, {.is_whole = true}, "of older traces; ignored", kIgnored));
};

// A figure of policies, which is written where the policy takes it, and must be there then.
template <std::size_t Index>
[[nodiscard]] bool takes_figure(const KvRetention& retention) {
  return kv_policy(retention.policy).*kKvFigures[Index].counts;
}

template <std::size_t Index>
void read_retention_figure(MapReader& reader, const Node& node, KvRetention& retention) {
  if constexpr (kKvFigures[Index].share != nullptr)
    reader.read(node, retention.*kKvFigures[Index].share, fraction());
  else
    reader.read(node, retention.*kKvFigures[Index].count,
                between(takes_figure<Index>(retention) ? 1 : 0, kLargestCount));
}

template <std::size_t Index>
[[nodiscard]] nlohmann::ordered_json write_retention_figure(const KvRetention& retention) {
  if (!takes_figure<Index>(retention)) return {};
  if constexpr (kKvFigures[Index].share != nullptr)
    return retention.*kKvFigures[Index].share;
  else
    return retention.*kKvFigures[Index].count;
}

template <std::size_t... Index>
constexpr auto retention_figures(std::index_sequence<Index...>) {
  return std::tuple(
      shaped(kKvFigures[Index].name, read_retention_figure<Index>, write_retention_figure<Index>,
             {.is_whole = kKvFigures[Index].share == nullptr, .is_number = kKvFigures[Index].share != nullptr},
             kKvFigures[Index].meaning,
             {.bounds = kKvFigures[Index].share != nullptr ? fraction() : between(0, kLargestCount),
              .unit = kKvFigures[Index].share != nullptr ? unit::share : "",
              .absent = "required by its policy"})...);
}

// The policy is read before its figures.
struct RetentionKeys {
  using Target = KvRetention;
  static constexpr auto keys =
      std::tuple_cat(std::tuple(word("policy", &KvRetention::policy, kRetentionPolicies,
                                     "which tokens stay in the cache, or are loaded", kRequired)),
                     retention_figures(std::make_index_sequence<kKvFigures.size()>{}));
  static void check(MapReader& reader, KvRetention& retention);
};

struct ExpertLoadKeys {
  using Target = ExpertLoad;
  static constexpr auto keys =
      std::tuple(value("zipf_exponent", &ExpertLoad::zipf_exponent,
                       "the share of tokens falls as an expert's rank to minus this", kCounted),
                 value("histogram", &ExpertLoad::histogram, "instead: how often each expert was chosen",
                       {.bounds = at_least(0), .absent = "none"}));
};

inline constexpr auto kLatentForms =
    std::to_array<Choice<LatentForm>>({{"expand", LatentForm::expand}, {"absorb", LatentForm::absorb}});

void read_weights(MapReader& reader, const Node& node, EngineOptions& options);
[[nodiscard]] nlohmann::ordered_json write_weights(const EngineOptions& options);

struct OptionsKeys {
  using Target = EngineOptions;
  static constexpr KeyTraits kAtLeastOne{.bounds = between(1, kLargestCount), .necessity = Necessity::required};
  static constexpr auto keys = std::tuple(
      value("block_size", &EngineOptions::block_size, "tokens per KV block, a power of two",
            {.bounds = between(1, 256), .necessity = Necessity::required}),
      value("kv_cache_dtype", &EngineOptions::kv_cache_dtype, "format of K and V", kRequired),
      shaped("weights", read_weights, write_weights, {.is_text = true}, "format of the layers' matrices", kRequired),
      value("activation_dtype", &EngineOptions::activation_dtype, "of activations between kernels", kRequired),
      value("max_num_seqs", &EngineOptions::max_num_seqs, "sequences in a step, at most", kAtLeastOne),
      value("max_num_batched_tokens", &EngineOptions::max_num_batched_tokens, "new tokens in a step, at most",
            kAtLeastOne),
      value("enable_chunked_prefill", &EngineOptions::enable_chunked_prefill,
            "a prompt may be computed over several steps", kRequired),
      value("gpu_memory_utilization", &EngineOptions::gpu_memory_utilization, "of memory, for weights and KV",
            {.bounds = fraction(), .unit = unit::share, .necessity = Necessity::required}),
      section<SplitKeys>("tiling", &EngineOptions::attention_split, "how a GPU's decode attention is split", kRequired),
      section<RetentionKeys>("kv_retention", &EngineOptions::kv_retention, "which tokens stay in the cache",
                             {.absent = "all"}),
      section<ExpertLoadKeys>("expert_load", &EngineOptions::expert_load,
                              "which experts tokens choose; `bench` writes the exponent for which a step touches as "
                              "many experts as the measured one",
                              {.absent = "all alike"}),
      word("activations", &EngineOptions::activations, kActivationModes,
           "what matmuls round activations to before they multiply"),
      value("kv_residual_tokens", &EngineOptions::kv_residual_tokens,
            "with `kivi4`, `kivi2`: newest tokens that stay in F16", {.bounds = between(32, 128)}),
      word("prefill_latents", &EngineOptions::prefill_latents, kLatentForms, "MLA: the form of prefills"),
      word("decode_latents", &EngineOptions::decode_latents, kLatentForms, "MLA: the form of decodes"));
};

// Equal sequences that follow each other. num_new_tokens is read before num_logits, which it bounds.
struct Run {
  int count = 0;
  SequenceSlice slice;
};

// Older traces say only whether the last new token's logits were computed.
void read_needs_logits(MapReader& reader, const Node& node, Run& run);
void read_num_logits(MapReader& reader, const Node& node, Run& run);
[[nodiscard]] nlohmann::ordered_json write_num_logits(const Run& run);

template <int SequenceSlice::*member>
inline constexpr auto of_slice = [](auto& run) -> auto& {
  return run.slice.*member;
};

struct RunKeys {
  using Target = Run;
  static constexpr auto keys =
      std::tuple(value("count", &Run::count, "how many there are",
                       {.bounds = between(1, kMostSequences), .necessity = Necessity::required}),
                 word(
                     "phase", [](auto& run) -> auto& { return run.slice.phase; }, kPhases,
                     "whether they prefill or decode", kRequired),
                 value("num_computed_tokens", of_slice<&SequenceSlice::num_computed_tokens>,
                       "tokens in the cache before the step", kRequiredCount),
                 value("num_new_tokens", of_slice<&SequenceSlice::num_new_tokens>, "tokens that the step computes",
                       {.bounds = between(1, kLargestCount), .necessity = Necessity::required}),
                 shaped("num_logits", read_num_logits, write_num_logits, {.is_whole = true},
                        "last new tokens whose logits are computed; 0 for all but the last chunk of a prompt",
                        {.bounds = between(0, kLargestCount), .absent = "`needs_logits`"}),
                 shaped("needs_logits", read_needs_logits, {.is_flag = true},
                        "older traces only: whether `num_logits` is 1", {.absent = "`num_logits`"}),
                 value("num_evicted_tokens", of_slice<&SequenceSlice::num_evicted_tokens>,
                       "computed earlier and since dropped from the cache", kCounted),
                 value("num_newly_evicted_tokens", of_slice<&SequenceSlice::num_newly_evicted_tokens>,
                       "of these, dropped to make room for the step", kCounted),
                 value("num_unwritten_tokens", of_slice<&SequenceSlice::num_unwritten_tokens>,
                       "of the new tokens, the first, whose K and V are in shared blocks", kCounted),
                 value("num_draft_tokens", of_slice<&SequenceSlice::num_draft_tokens>,
                       "guessed tokens among a decode's new ones", kCounted),
                 value("num_tree_tokens", of_slice<&SequenceSlice::num_tree_tokens>,
                       "the last tokens of the context that form a tree of guesses",
                       {.bounds = between(0, kMostDraftTokens + 1)}));
  static void check(MapReader& reader, Run& run);
};

// Pairs of how many were tested and accepted.
[[nodiscard]] std::vector<DraftCounts::Place> places_of(MapReader& reader, const Node& node);
[[nodiscard]] nlohmann::ordered_json places_json(const std::vector<DraftCounts::Place>& places);

template <std::vector<DraftCounts::Place> DraftCounts::*member>
void read_places(MapReader& reader, const Node& node, DraftCounts& drafts) {
  drafts.*member = places_of(reader, node);
}
template <std::vector<DraftCounts::Place> DraftCounts::*member>
[[nodiscard]] nlohmann::ordered_json write_places(const DraftCounts& drafts) {
  return places_json(drafts.*member);
}

struct DraftKeys {
  using Target = DraftCounts;
  static constexpr auto keys =
      std::tuple(value("drafts", &DraftCounts::num_drafts, "sequences that had a draft", kRequiredCount),
                 value("draft_tokens", &DraftCounts::num_draft_tokens, "tokens of the drafts", kRequiredCount),
                 value("accepted_tokens", &DraftCounts::num_accepted_tokens, "of them accepted", kRequiredCount),
                 shaped("by_position", read_places<&DraftCounts::by_depth>, write_places<&DraftCounts::by_depth>,
                        {.is_counts = true, .must_be_list = true},
                        "pairs `[tested, accepted]`, by the depth in the draft", kRequired),
                 shaped("by_rank", read_places<&DraftCounts::by_rank>, write_places<&DraftCounts::by_rank>,
                        {.is_counts = true, .must_be_list = true}, "the same by the rank among the guesses for a place",
                        kRequired));
};

struct OpTime {
  std::string name;
  Seconds duration;
};

struct OpKeys {
  using Target = OpTime;
  static constexpr auto keys =
      std::tuple(value("name", &OpTime::name, "as in the plan", kRequired),
                 value("seconds", &OpTime::duration,
                       "all executions of the op together, median over the repeats; 0 = not timed separately",
                       {.bounds = between(0, kLongestStep), .unit = unit::seconds, .necessity = Necessity::required}));
};

void read_batch(MapReader& reader, const Node& node, TraceStep& step);
void read_ops(MapReader& reader, const Node& node, TraceStep& step);
[[nodiscard]] nlohmann::ordered_json write_batch(const TraceStep& step);
[[nodiscard]] nlohmann::ordered_json write_ops(const TraceStep& step);

struct TraceStepKeys {
  using Target = TraceStep;
  static constexpr auto keys = std::tuple(
      value("id", &TraceStep::id, "names the step in messages", kRequired),
      section<ModelKeys>("model", &TraceStep::model, "the model's shape", kRequired),
      section<OptionsKeys>("options", &TraceStep::options, "the engine's options", kRequired),
      shaped<RunKeys>("batch", read_batch, write_batch, {.must_be_list = true},
                      "runs of equal sequences, prefills first", kRequired),
      value("seconds", &TraceStep::duration, "median over the repeats",
            {.bounds = between(kShortestStep, kLongestStep), .unit = unit::seconds, .necessity = Necessity::required}),
      value("spread_seconds", &TraceStep::spread, "half the interquartile range",
            {.bounds = between(0, kLongestStep), .unit = unit::seconds, .necessity = Necessity::required}),
      value("repeats", &TraceStep::repeats, "how often it ran",
            {.bounds = at_least(1), .necessity = Necessity::required}),
      value("cold_share", [](auto& step) -> auto& { return step.batch.cold_share; },
            "of what shared caches keep between steps, what others had evicted when the step began",
            {.bounds = between(0, 1), .unit = unit::share}),
      section<DraftKeys>("drafts", &TraceStep::drafts, "of a step that verified drafts", {.absent = "none"}),
      value("drafting_seconds", &TraceStep::drafting, "time of drafting before the step; not part of `seconds`",
            {.bounds = between(0, kLongestStep), .unit = unit::seconds, .absent = "0"}),
      shaped<OpKeys>("ops", read_ops, write_ops, {.must_be_list = true}, "in the plan's order, or none", kRequired));
};

}  // namespace dculab::config
