#include "present/study/recommend_groups.hpp"

#include <cstddef>
#include <string>
#include <vector>

#include "config/unit_text.hpp"
#include "model/kv/kv_bytes.hpp"
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
  return "→ no number of KV heads is recommended, the accuracy of " + serving.model.name +
         " with others than its own " + std::to_string(serving.model.heads().num_key_value_heads) +
         " is not known; this is a front of speed against KV heads kept";
}

}  // namespace

Table group_table(const study::Recommendation& result) {
  const ModelShape& own = result.serving.model;
  Table table;
  table.title = "What other group sizes would bring, all else as above; a model must be trained for them";
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
         each.served.batch == 0
             ? Cell("does not serve", 0)
             : Cell(number(each.served.output_tokens_per_second) + " tokens/s", each.served.output_tokens_per_second),
         chosen || each.served.batch == 0 ? Cell("", 0) : Cell(signed_percent(gain, 2), gain),
         std::to_string(each.served.batch), Cell(config::short_text(bytes), bytes.value()), loss_text(result, group),
         front[index] ? "yes" : ""});
  }
  table.notes.push_back(how_decided(result));
  return table;
}

}  // namespace dculab::present
