#include "present/values/retention_json.hpp"

#include <string>

#include "core/kv/figures.hpp"

namespace dculab::present {

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
