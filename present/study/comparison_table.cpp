#include "present/study/comparison_table.hpp"

#include <algorithm>
#include <array>

#include "config/scenario_file.hpp"
#include "config/unit_text.hpp"

namespace dculab::present {
namespace {

constexpr std::array<const char*, 17> kCompared{"steps",
                                                "output_tokens",
                                                "total_time",
                                                "requests_per_second",
                                                "output_tokens_per_second",
                                                "goodput",
                                                "ttft_mean",
                                                "ttft_p50",
                                                "ttft_p99",
                                                "tpot_mean",
                                                "tpot_p50",
                                                "tpot_p99",
                                                "itl_p50",
                                                "itl_p99",
                                                "latency_p50",
                                                "latency_p99",
                                                "requests_with_few_heads"};

[[nodiscard]] bool is_time(const std::string& metric) {
  const auto known = std::ranges::find(config::metrics(), metric, &config::Metric::name);
  return known != config::metrics().end() && known->kind == config::MetricKind::time;
}

}  // namespace

Cell figure_cell(const std::string& metric, double value) {
  return {is_time(metric) ? config::short_text(Seconds(value)) : number(value), value};
}

Table comparison_table(const std::map<std::string, double>& simulated, const std::map<std::string, double>& measured) {
  Table table;
  table.title = "Simulated against measured on this machine";
  table.columns = {"metric", "simulated", "measured", "off by"};
  for (const std::string metric : kCompared) {
    if (!simulated.contains(metric) || !measured.contains(metric)) continue;
    const double real = measured.at(metric);
    const double off = real > 0 ? simulated.at(metric) / real - 1 : 0;
    table.rows.push_back({metric, figure_cell(metric, simulated.at(metric)), figure_cell(metric, real),
                          Cell((off < 0 ? "" : "+") + percent(off, 2), off)});
  }
  return table;
}

std::vector<std::pair<std::string, ComparedFigure>> compared_figures(const std::map<std::string, double>& simulated,
                                                                     const std::map<std::string, double>& measured) {
  std::vector<std::pair<std::string, ComparedFigure>> figures;
  for (const std::string metric : kCompared)
    if (simulated.contains(metric) && measured.contains(metric))
      figures.emplace_back(metric, ComparedFigure{simulated.at(metric), measured.at(metric)});
  return figures;
}

}  // namespace dculab::present
