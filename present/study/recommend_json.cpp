#include "present/study/recommend_report.hpp"

#include <algorithm>

#include "present/study/speculation_report.hpp"
#include "present/values/verdict_text.hpp"
#include "study/decide/step_choices.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] Json to_json(const std::optional<int>& flip) { return flip ? Json(*flip) : Json(nullptr); }

[[nodiscard]] Json flips_json(const sim::Flips& batch, const sim::Flips& context) {
  return {{"batch_below", to_json(batch.below)},
          {"batch_above", to_json(batch.above)},
          {"context_below", to_json(context.below)},
          {"context_above", to_json(context.above)}};
}

[[nodiscard]] Json to_json(const study::Candidate& candidate) {
  return {{"value", candidate.value},
          {"max_num_seqs", candidate.served.batch},
          {"limit", sim::name(candidate.served.limit)},
          {"output_tokens_per_second", candidate.served.output_tokens_per_second},
          {"tpot_seconds", candidate.served.tpot.value()}};
}

[[nodiscard]] Json to_json(const study::Decision& decision) {
  Json json = costs_json(decision.evaluated, decision.verdict);
  json["key"] = decision.key;
  json["tie"] = std::max(decision.preference.resolution, decision.preference.given_up);
  json["by"] = decision.by_requests ? "served requests" : "closed form";
  json["candidates"] = Json::array();
  for (const study::Candidate& candidate : decision.candidates) json["candidates"].push_back(to_json(candidate));
  if (decision.runner_up() == nullptr) return json;
  json["runner_up"] = decision.runner_up()->value;
  const study::Cost margin = decision.margin();
  json["margin"] = margin.value;
  json["margin_interval"] = {margin.low, margin.high};
  json["margin_basis"] = sim::name(sim::Basis::priors);  // of a calibrated machine too
  json["difference"] = decision.difference;
  json["step_agrees"] = decision.step_agrees;
  json["flips"] = flips_json(decision.by_batch, decision.by_context);
  return json;
}

[[nodiscard]] Json to_json(const study::StackChoice& kernel) {
  Json json{{"kernel", kernel.limits.stack.name},
            {"block_sizes", kernel.limits.block_sizes},
            {"partition_tokens", kernel.limits.partition_tokens},
            {"source", kernel.limits.stack.description}};
  if (kernel.best) {
    json["best"] = to_json(*kernel.best);
    json["best"]["kv_cache_dtype"] = name(kernel.best->setting.kv_cache_dtype);
  }
  if (!kernel.limits.why_not.empty()) json["why_not"] = kernel.limits.why_not;
  return json;
}

[[nodiscard]] Json to_json(const study::BatchedTokensChoice& choice) {
  Json json = costs_json(choice.evaluated, choice.verdict);
  json["key"] = "engine.max_num_batched_tokens";
  json["choice"] = choice.candidates[choice.verdict.chosen].max_num_batched_tokens;
  json["by"] = choice.by_goodput ? "goodput" : "latency_mean";
  json["candidates"] = Json::array();
  for (const study::BatchedTokens& each : choice.candidates)
    json["candidates"].push_back({{"value", each.max_num_batched_tokens},
                                  {"goodput", each.goodput},
                                  {"slo_attainment", each.slo_attainment},
                                  {"ttft_p90", each.ttft_p90.value()},
                                  {"tpot_p90", each.tpot_p90.value()},
                                  {"latency_mean", each.latency_mean.value()},
                                  {"preemptions", each.preemptions},
                                  {"prompt_token_seconds", each.prompt_token.value()},
                                  {"most_requests_per_second", each.full_requests_per_second},
                                  {"most_tpot_p50_seconds", each.full_tpot.value()}});
  return json;
}

[[nodiscard]] Json to_json(const sim::Regret& regret) {
  return {{"regret", regret.regret}, {"worst_single", regret.worst_single}};
}

}  // namespace

Json to_json(const study::Recommendation& result) {
  Json json{{"model", result.serving.model.name},
            {"tensor_parallel_size", result.serving.tensor_parallel_size},
            {"machine", result.serving.machine.name},
            {"prompt_tokens", result.serving.load.prompt_tokens},
            {"output_tokens", result.serving.load.output_tokens},
            {"context_tokens", result.serving.mean_context()},
            {"max_num_seqs", result.served.batch},
            {"most_num_seqs", result.served.most},
            {"limit", sim::name(result.served.limit)},
            {"output_tokens_per_second", result.tokens().full_requests_per_second * result.serving.load.output_tokens},
            {"tpot_seconds", result.tokens().full_tpot.value()},
            {"step_seconds", result.step.value()},
            {"interval_seconds", {result.confidence.low.value(), result.confidence.high.value()}},
            {"basis", sim::name(result.confidence.basis)},
            {"bound", result.bound.name},
            {"bound_flips", flips_json(result.bound.by_batch, result.bound.by_context)},
            {"vllm_options", vllm_options(result)},
            {"decisions", Json::array()},
            {"kv_heads", Json::array()},
            {"kernels", Json::array()},
            {"max_num_batched_tokens", to_json(result.batched_tokens)},
            {"requests_per_second", result.offered_requests_per_second}};
  for (const study::Decision& decision : result.decisions) json["decisions"].push_back(to_json(decision));
  const std::vector<bool> front = study::speed_front(result.kv_heads.evaluated);
  for (std::size_t index = 0; index < front.size(); ++index) {
    json["kv_heads"].push_back(to_json(result.kv_heads.candidates[index]));
    json["kv_heads"].back()["front"] = static_cast<bool>(front[index]);
  }
  json["kv_heads_by"] = result.kv_heads_by();
  for (const study::StackChoice& kernel : result.stacks) json["kernels"].push_back(to_json(kernel));
  const bool has_regret = result.measured && result.measured->regret;
  json["regret"] = has_regret ? to_json(*result.measured->regret) : Json(nullptr);
  if (result.measured) json["refused"] = result.measured->refused;
  if (result.drafts) {
    const std::vector<study::DraftOutcome>& drafts = result.drafts->outcomes;
    for (const study::DraftOutcome& draft : drafts) json["drafts"].push_back(to_json(draft));
    const auto best = study::best_draft(drafts);
    json["num_speculative_tokens"] = best ? drafts[*best].shape.depth() : 0;
  }
  return json;
}

}  // namespace dculab::present
