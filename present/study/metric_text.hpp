// How tables show metrics, and what they and a service level are in JSON.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "config/scenario_file.hpp"
#include "core/serving_metrics.hpp"
#include "fields/field_list.hpp"

namespace dculab::present {

// "30.4 ms"; "-" where a point has no such figure, which is NaN.
[[nodiscard]] std::string metric_text(std::string_view metric, double figure);

// The head of a metric's column.
[[nodiscard]] std::string metric_title(std::string_view metric);

// Those whose columns tables show: all of a step, of served requests what the scenario asks about and some more.
[[nodiscard]] std::vector<std::size_t> shown_metrics(const config::Scenario& scenario);

// All that objectives may name, and those of a service with pools: figures in s, 1/s, B or a number.
[[nodiscard]] std::vector<DataKey> metric_keys();

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<ServiceLevel> {
  static constexpr std::string_view id = "service_level";
  static constexpr std::string_view doc = "What a request must not exceed; what is absent may be anything.";
  static constexpr auto fields =
      std::tuple(field("ttft", "time to first token", &ServiceLevel::ttft),
                 field("tpot", "time per output token", &ServiceLevel::tpot),
                 field("latency", "of a whole request", &ServiceLevel::latency),
                 field("slowdown", "latency over that of the same request alone", unit::ratio, &ServiceLevel::slowdown),
                 field("share", "of the requests, that should be within", unit::share, &ServiceLevel::share));
};

}  // namespace dculab
