// The fields of which tokens the KV cache keeps, or a decode loads.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "core/kv/figures.hpp"
#include "core/kv/retention.hpp"
#include "core/kv/table.hpp"
#include "present/output/field_json.hpp"

namespace dculab {

template <>
struct FieldList<KvRetention> {
  static constexpr std::string_view id = "kv_retention";
  static constexpr std::string_view doc = "Which tokens the KV cache keeps, or a decode loads.";

  using Figure = OrNull<std::variant<int, double>>;

  // Of kKvFigures; null where the policy does not take it.
  [[nodiscard]] static std::vector<std::pair<std::string_view, Figure>> figures(const KvRetention& retention) {
    std::vector<std::pair<std::string_view, Figure>> figures;
    for (const KvFigure& figure : kKvFigures) {
      Figure& reported = figures.emplace_back(figure.name, Figure{}).second;
      if (!(kv_policy(retention.policy).*figure.counts)) continue;
      if (figure.share != nullptr)
        reported.value = retention.*figure.share;
      else
        reported.value = retention.*figure.count;
    }
    return figures;
  }
  [[nodiscard]] static std::vector<DataKey> figure_keys() {
    std::vector<DataKey> keys;
    for (const KvFigure& figure : kKvFigures)
      keys.push_back({std::string(figure.name), std::string(figure.share != nullptr ? unit::share : unit::count),
                      "of the policy; null where it does not take it"});
    return keys;
  }

  static constexpr auto fields =
      std::tuple(field("policy", "its name, with - between words",
                       [](const KvRetention& retention) { return policy_text(retention.policy); }),
                 keyed(&figure_keys, &figures));
};

}  // namespace dculab
