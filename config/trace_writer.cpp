#include <nlohmann/json.hpp>

#include "config/trace_file.hpp"
#include "config/trace_model.hpp"
#include "config/weight_format_text.hpp"
#include "core/activation_mode.hpp"
#include "core/kv/figures.hpp"

namespace dculab::config {
namespace {

using Json = nlohmann::ordered_json;

// Counts of tokens stand in the steps of every policy; what else there is, in those of its own.
Json retention_json(const KvRetention& retention) {
  const KvPolicy& policy = kv_policy(retention.policy);
  Json json{{"policy", policy.name}};
  for (const KvFigure& figure : kKvFigures) {
    const std::string key(figure.name);
    if (figure.counts == &KvPolicy::has_budget && !policy.has_budget) continue;
    json[key] = figure.share != nullptr ? Json(retention.*figure.share) : Json(retention.*figure.count);
  }
  return json;
}

Json expert_load_json(const ExpertLoad& load) {
  return load.histogram.empty() ? Json{{"zipf_exponent", load.zipf_exponent}} : Json{{"histogram", load.histogram}};
}

// What only some steps have is left out of the others.
void add_counts(Json& run, const SequenceSlice& slice) {
  if (slice.num_evicted_tokens > 0) run["num_evicted_tokens"] = slice.num_evicted_tokens;
  if (slice.num_newly_evicted_tokens > 0) run["num_newly_evicted_tokens"] = slice.num_newly_evicted_tokens;
  if (slice.num_unwritten_tokens > 0) run["num_unwritten_tokens"] = slice.num_unwritten_tokens;
  if (slice.num_draft_tokens > 0) run["num_draft_tokens"] = slice.num_draft_tokens;
  if (slice.num_tree_tokens > 0) run["num_tree_tokens"] = slice.num_tree_tokens;
}

Json options_json(const EngineOptions& options) {
  const AttentionSplit& split = options.attention_split;
  Json json{
      {"block_size", options.block_size},
      {"kv_cache_dtype", name(options.kv_cache_dtype)},
      {"weights", weight_format_text(options.weights)},
      {"activation_dtype", name(options.activation_dtype)},
      {"max_num_seqs", options.max_num_seqs},
      {"max_num_batched_tokens", options.max_num_batched_tokens},
      {"enable_chunked_prefill", options.enable_chunked_prefill},
      {"gpu_memory_utilization", options.gpu_memory_utilization},
      {"tiling",
       {{"partition_tokens", split.partition_tokens}, {"query_heads_per_workgroup", split.query_heads_per_workgroup}}}};
  if (options.kv_retention.policy != RetentionPolicy::all) json["kv_retention"] = retention_json(options.kv_retention);
  if (options.expert_load != ExpertLoad()) json["expert_load"] = expert_load_json(options.expert_load);
  if (options.activations != ActivationMode::exact) json["activations"] = name(options.activations);
  if (quantizes_together(options.kv_cache_dtype)) json["kv_residual_tokens"] = options.kv_residual_tokens;
  return json;
}

Json places_json(const std::vector<DraftCounts::Place>& places) {
  Json json = Json::array();
  for (const DraftCounts::Place& place : places) json.push_back(Json::array({place.tested, place.accepted}));
  return json;
}

Json drafts_json(const DraftCounts& drafts) {
  return {{"drafts", drafts.num_drafts},
          {"draft_tokens", drafts.num_draft_tokens},
          {"accepted_tokens", drafts.num_accepted_tokens},
          {"by_position", places_json(drafts.by_depth)},
          {"by_rank", places_json(drafts.by_rank)}};
}

bool alike(const SequenceSlice& a, const SequenceSlice& b) {
  return a.phase == b.phase && a.num_computed_tokens == b.num_computed_tokens && a.num_new_tokens == b.num_new_tokens &&
         a.num_logits == b.num_logits && a.num_evicted_tokens == b.num_evicted_tokens &&
         a.num_newly_evicted_tokens == b.num_newly_evicted_tokens && a.num_unwritten_tokens == b.num_unwritten_tokens &&
         a.num_draft_tokens == b.num_draft_tokens && a.num_tree_tokens == b.num_tree_tokens;
}

// Runs of equal slices, in order.
Json batch_json(const Batch& batch) {
  Json runs = Json::array();
  const SequenceSlice* previous = nullptr;
  for (const SequenceSlice& slice : batch.sequences) {
    if (previous != nullptr && alike(*previous, slice)) {
      runs.back()["count"] = runs.back()["count"].get<int>() + 1;
    } else {
      runs.push_back({{"count", 1},
                      {"phase", slice.phase == Phase::prefill ? "prefill" : "decode"},
                      {"num_computed_tokens", slice.num_computed_tokens},
                      {"num_new_tokens", slice.num_new_tokens},
                      {"num_logits", slice.num_logits}});
      add_counts(runs.back(), slice);
    }
    previous = &slice;
  }
  return runs;
}

Json step_json(const TraceStep& step) {
  Json ops = Json::array();
  for (std::size_t index = 0; index < step.op_names.size(); ++index)
    ops.push_back({{"name", step.op_names[index]}, {"seconds", step.op_durations[index].value()}});
  Json json{{"id", step.id},
            {"model", trace_model_json(step.model)},
            {"options", options_json(step.options)},
            {"batch", batch_json(step.batch)},
            {"seconds", step.duration.value()},
            {"spread_seconds", step.spread.value()},
            {"repeats", step.repeats}};
  if (step.batch.cold_share > 0) json["cold_share"] = step.batch.cold_share;
  if (step.drafts.num_drafts > 0) json["drafts"] = drafts_json(step.drafts);
  if (step.drafting > Seconds()) json["drafting_seconds"] = step.drafting.value();
  json["ops"] = std::move(ops);
  return json;
}

// Bytes that are not UTF-8, say in a device name, must not stop a measurement from being saved.
std::string line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

std::string trace_json_lines(const Trace& trace) {
  const TraceHeader& header = trace.header;
  std::string text = line({{"schema", kTraceSchema},
                           {"machine", header.machine},
                           {"device", header.device},
                           {"build", header.build},
                           {"threads", header.threads},
                           {"timing", header.timing},
                           {"created", header.created}});
  for (const TraceStep& step : trace.steps) text += line(step_json(step));
  return text;
}

}  // namespace dculab::config
