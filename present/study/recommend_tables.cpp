#include "present/study/recommend_tables.hpp"

#include <cstddef>
#include <string>
#include <vector>

#include "config/draft_shape_text.hpp"
#include "config/unit_text.hpp"
#include "model/kv/kv_bytes.hpp"
#include "present/study/speculation_report.hpp"
#include "study/decide/attention_difference.hpp"
#include "study/decide/step_choices.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] std::string loss_text(const study::Recommendation& result, int group) {
  if (!result.accuracy) return "not known";
  const auto known = result.accuracy->by_group.find(group);
  return known == result.accuracy->by_group.end() ? "not known" : signed_percent(known->second.loss, 2);
}

// How the KV heads were decided, or why they were not.
[[nodiscard]] std::string how_decided(const study::Recommendation& result) {
  const sim::ServingCase& serving = result.serving;
  const std::string heads = study::heads_text(result.setting.kv_heads);
  if (result.accuracy)
    return "→ " + heads + ": the accuracy of " + result.accuracy->model + " (" + result.accuracy->metric +
           ") decides which lose little enough" +
           (result.accuracy->model == serving.model.name ? "" : "; that of " + serving.model.name + " is not known");
  if (result.any_kv_heads) return "→ " + heads + " by speed alone, as --any-kv-heads asks; accuracy was not weighed";
  return "→ no number of KV heads is recommended, because the accuracy of " + serving.model.name +
         " with other than its own " + std::to_string(serving.model.heads().num_key_value_heads) + " is not known";
}

// What is drafted, if it pays.
[[nodiscard]] std::string drafts_verdict(const study::Recommendation& result) {
  const std::string at = " with " + std::to_string(result.served.batch) + " at a time";
  const study::DraftCandidates& drafts = *result.drafts;
  const auto best = study::best_draft(drafts.outcomes);
  const std::string asked = "; break-even batch of the scenario's own draft: " + break_even_text(drafts.break_even);
  if (!best) return "→ no drafts: they do not pay" + at + asked;
  const study::DraftOutcome& draft = drafts.outcomes[*best];
  return "→ num_speculative_tokens " + config::draft_shape_text(draft.shape) + at + ": speed-up " +
         number(draft.speed_up) + " of a decode step (90 % interval " + number(draft.low) + " to " +
         number(draft.high) + ")" + asked;
}

}  // namespace

Table group_table(const study::Recommendation& result) {
  const ModelShape& own = result.serving.model;
  Table table;
  table.title =
      "What other group sizes would bring, in closed form and all else as above; a model must be trained for them";
  table.columns = {"KV heads",  "group",      "output",        "against choice",
                   "at a time", "KV / token", "accuracy loss", "front"};
  const std::vector<bool> front = study::speed_front(result.kv_heads.evaluated);
  for (std::size_t index = 0; index < front.size(); ++index) {
    const study::Candidate& each = result.kv_heads.candidates[index];
    const int heads = each.setting.kv_heads;
    const int group = own.heads().num_attention_heads / heads;
    const bool chosen = heads == result.setting.kv_heads;
    const double gain = each.served.output_tokens_per_second / result.served.output_tokens_per_second - 1;
    const Bytes bytes = kv_bytes_per_token(with_kv_heads(own, heads), each.setting.kv_cache_dtype);
    table.rows.push_back(
        {each.value + (chosen ? " *" : "") + (heads == own.heads().num_key_value_heads ? " (own)" : ""),
         std::to_string(group),
         each.served.batch == 0 ? "does not serve" : number(each.served.output_tokens_per_second) + " tokens/s",
         chosen || each.served.batch == 0 ? "" : signed_percent(gain, 2), std::to_string(each.served.batch),
         config::short_text(bytes), loss_text(result, group), front[index] ? "yes" : ""});
  }
  table.notes.push_back(how_decided(result));
  return table;
}

Table tokens_table(const study::Recommendation& result) {
  Table table;
  table.title = "max_num_batched_tokens, requests simulated";
  if (result.offered_requests_per_second > 0)
    table.title += " at " + number(result.offered_requests_per_second) + " requests/s" +
                   (result.offered_by_us ? ", " + percent(study::kOfferedShare, 1) + " of the closed form's rate" : "");
  table.columns = {"tokens",   "a prompt's token", "at most",      "goodput",
                   "TTFT P90", "TPOT P90",         "mean latency", "preemptions"};
  for (std::size_t index = 0; index < result.batched_tokens.candidates.size(); ++index) {
    const study::BatchedTokens& each = result.batched_tokens.candidates[index];
    table.rows.push_back(
        {std::to_string(each.max_num_batched_tokens) + (index == result.batched_tokens.verdict.chosen ? " *" : ""),
         config::short_text(each.prompt_token), number(each.full_requests_per_second) + " requests/s",
         number(each.goodput) + " requests/s", config::short_text(each.ttft_p90), config::short_text(each.tpot_p90),
         config::short_text(each.latency_mean), std::to_string(each.preemptions)});
  }
  table.notes = {
      "Small steps let running requests go on sooner; they pay where a prompt's token, in a step of prompts "
      "alone, costs hardly more than in large ones. At most: while the queue never empties; what carries less than is "
      "needed is not chosen."};
  return table;
}

Table drafts_table(const study::Recommendation& result) {
  std::vector<StudiedDraft> studied;
  for (const study::DraftOutcome& outcome : result.drafts->outcomes)
    studied.push_back(
        {{{"engine.speculative_config.num_speculative_tokens", config::draft_shape_text(outcome.shape)}}, outcome});
  Table table = drafts_table("Drafts, all else as chosen without them", studied);
  table.notes.push_back(drafts_verdict(result));
  return table;
}

}  // namespace dculab::present
