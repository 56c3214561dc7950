#include "present/values/retention_text.hpp"

#include <algorithm>
#include <sstream>

#include "core/kv/figures.hpp"

namespace dculab::present {

std::string policy_text(RetentionPolicy policy) {
  std::string text(name(policy));
  std::ranges::replace(text, '_', '-');
  return text;
}

std::string retention_text(const KvRetention& retention) {
  const KvPolicy& policy = kv_policy(retention.policy);
  std::string text = policy_text(retention.policy);
  if (policy.has_sinks) text += " " + std::to_string(retention.sink_tokens) + " +";
  if (policy.has_heavy_hitters) text += " " + std::to_string(retention.heavy_hitter_tokens) + " +";
  if (policy.has_window) text += " " + std::to_string(retention.window_tokens);
  if (!policy.has_budget) return text;
  std::ostringstream share;
  share << " " << 100 * retention.kv_budget << " %";
  return text + share.str();
}

Json retention_json(const KvRetention& retention) {
  Json json{{"policy", policy_text(retention.policy)}};
  for (const KvFigure& figure : kKvFigures) {
    Json& value = json[std::string(figure.name)];
    if (!(kv_policy(retention.policy).*figure.counts)) continue;
    value = figure.share != nullptr ? Json(retention.*figure.share) : Json(retention.*figure.count);
  }
  return json;
}

}  // namespace dculab::present
