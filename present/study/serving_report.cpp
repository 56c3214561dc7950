#include "present/study/serving_report.hpp"

#include <algorithm>
#include <array>

#include "config/unit_text.hpp"
#include "study/evaluate/serving_figures.hpp"

namespace dculab::present {
namespace {

struct NamedLatency {
  const char* title;
  const QuantileSketch& values;
};

[[nodiscard]] std::array<NamedLatency, 4> latencies(const ServingMetrics& metrics) {
  return {{{"TTFT", metrics.ttft()}, {"TPOT", metrics.tpot()}, {"ITL", metrics.itl()}, {"latency", metrics.latency()}}};
}

[[nodiscard]] std::string time_cell(Seconds time) { return config::short_text(time); }

// Intervals [first, end) as one.
[[nodiscard]] TimelineInterval joined(const std::vector<TimelineInterval>& intervals, std::size_t first,
                                      std::size_t end) {
  TimelineInterval all = intervals[first];
  for (std::size_t index = first + 1; index < end; ++index) all = merged(all, intervals[index]);
  return all;
}

// "slower than alone: 1.1 x P50, ..."
[[nodiscard]] std::string slowdown_line(const QuantileSketch& slowdown) {
  std::string line = "latency against alone:";
  for (const auto& [suffix, share] : study::kPercentiles)
    line +=
        std::string(line.ends_with(':') ? " " : ", ") + suffix + " " + number(slowdown.quantile(share).value()) + " x";
  return line;
}

}  // namespace

std::string head_set_line(const HeadSetFigures& figures) {
  const HeadSetCounts& counts = figures.counts;
  const auto served = [&counts](HeadSet set, int heads) {
    const auto index = static_cast<std::size_t>(set);
    return std::to_string(counts.requests[index]) + " requests (" + std::to_string(counts.tokens[index]) +
           " tokens) with " + std::to_string(heads);
  };
  return "KV heads by load: " + served(HeadSet::many, figures.many) + ", " + served(HeadSet::few, figures.few) + "; " +
         std::to_string(counts.switches) + " changes, " + std::to_string(counts.steps_of_both) + " of " +
         std::to_string(counts.steps) + " steps ran the model with both; the second set takes " +
         config::short_text(figures.few_weights) + " of weights";
}

Table latency_table(const ServingMetrics& metrics) {
  Table table;
  table.columns = {"", "mean", "P50", "P90", "P99", "largest"};
  for (const NamedLatency& latency : latencies(metrics)) {
    if (latency.values.count() == 0) continue;
    Row row{latency.title, time_cell(latency.values.mean())};
    for (const auto& [suffix, share] : study::kPercentiles) row.push_back(time_cell(latency.values.quantile(share)));
    row.push_back(time_cell(latency.values.largest()));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table timeline_table(const ServingTimeline& timeline, std::int64_t num_blocks, int num_engines, std::size_t rows) {
  Table table;
  table.title = "Over time";
  table.columns = {"from",           "to",           "busy",     "running",    "waiting",
                   "KV blocks used", "unused slots", "tokens/s", "preemptions"};
  const std::vector<TimelineInterval>& intervals = timeline.intervals();
  const std::size_t parts = std::min(rows, intervals.size());
  for (std::size_t part = 0; part < parts; ++part) {
    const TimelineInterval all =
        joined(intervals, part * intervals.size() / parts, (part + 1) * intervals.size() / parts);
    const Seconds length = all.end - all.begin;
    const double share = all.used_blocks / static_cast<double>(num_blocks);
    const double rate = static_cast<double>(all.new_tokens) / length.value();
    table.rows.push_back({time_cell(all.begin), time_cell(all.end), percent(all.busy / length), number(all.running),
                          number(all.waiting), percent(share), percent(all.unused_slots), number(rate),
                          std::to_string(all.preemptions)});
  }
  table.notes = {(num_engines == 1 ? std::string("Means over steps, weighted by their time")
                                   : "All " + std::to_string(num_engines) +
                                         " engines together: sums of what each does on average over the time, idle " +
                                         "times counted; busy: their mean") +
                 "; tokens: of prompts and answers."};
  return table;
}

std::vector<std::string> throughput_lines(const ServingMetrics& metrics, const ServiceLevel& objective) {
  const std::map<std::string, double> figures = study::serving_figures(metrics);
  std::vector<std::string> lines{
      std::to_string(metrics.requests()) + " requests, " + std::to_string(metrics.prompt_tokens()) + " + " +
          std::to_string(metrics.output_tokens()) + " tokens in " + config::short_text(metrics.duration()),
      number(figures.at("requests_per_second")) + " requests/s, " + number(figures.at("output_tokens_per_second")) +
          " output tokens/s, " + number(figures.at("tokens_per_second")) + " tokens/s with prompts"};
  if (const std::int64_t found = metrics.cached_tokens() - metrics.stored_tokens(); found > 0)
    lines.push_back(std::to_string(found) + " prompt tokens found by prefix caching");
  if (metrics.stored_tokens() > 0)
    lines.push_back(std::to_string(metrics.stored_tokens()) + " prompt tokens read from the KV store");
  if (metrics.padding_tokens() > 0)
    lines.push_back(std::to_string(metrics.padding_tokens()) + " tokens of padding skipped, beside the prompts");
  if (metrics.duplicate_tokens() > 0)
    lines.push_back(std::to_string(metrics.duplicate_tokens()) + " prompt tokens skipped in duplicates of prompts");
  if (metrics.slowdown().count() > 0) lines.push_back(slowdown_line(metrics.slowdown()));
  if (objective.ttft || objective.tpot || objective.latency || objective.slowdown)
    lines.push_back(percent(metrics.share_within_objective()) + " of the requests within the slo, " +
                    (metrics.share_within_objective() >= objective.share ? "at least " : "fewer than ") +
                    percent(objective.share) + ": a goodput of " + number(figures.at("goodput")) +
                    " requests/s over the whole run");
  return lines;
}

}  // namespace dculab::present
