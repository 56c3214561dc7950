#include "config/serving_runs_file.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "config/csv_rows.hpp"
#include "config/map_reader.hpp"
#include "core/batch.hpp"
#include "files/input.hpp"

namespace dculab::config {
namespace {

constexpr std::size_t kLargestRunsFile = 64 << 20;
constexpr double kMostRequestsOfARun = 1 << 22;
constexpr std::string_view kRivalColumn = "predicted_by_";
constexpr Bounds kServedMilliseconds = between(1e-6, 1e12);

constexpr std::array<Choice<ServedMetric>, kServedMetrics> kServedMetricWords{{
    {"e2e_mean", ServedMetric::e2e_mean},
    {"e2e_p90", ServedMetric::e2e_p90},
    {"e2e_p99", ServedMetric::e2e_p99},
    {"itl_mean", ServedMetric::itl_mean},
    {"ttft_mean", ServedMetric::ttft_mean},
    {"ttft_p90", ServedMetric::ttft_p90},
    {"ttft_p99", ServedMetric::ttft_p99},
}};
constexpr std::array<Choice<bool>, 4> kServedBools{
    {{"true", true}, {"false", false}, {"True", true}, {"False", false}}};
constexpr std::array<Choice<Stated>, 5> kStatedWords{{{"true", Stated::yes},
                                                      {"false", Stated::no},
                                                      {"True", Stated::yes},
                                                      {"False", Stated::no},
                                                      {"unknown", Stated::unknown}}};

// The rivals' cells, which are taken out of the row.
[[nodiscard]] std::map<std::string, Seconds> take_rivals(Node& row, ProblemList& problems) {
  std::map<std::string, Seconds> predicted;
  const auto is_rivals = [](const Node& cell) { return cell.key.starts_with(kRivalColumn); };
  MapReader reader(&row, "", problems);
  for (const Node& cell : row.children) {
    if (!is_rivals(cell)) continue;
    double milliseconds = 0;
    reader.read(cell, milliseconds, kServedMilliseconds);
    if (!predicted.emplace(cell.key.substr(kRivalColumn.size()), Seconds(milliseconds / 1e3)).second)
      problems.add(cell, cell.key + ": stands twice");
  }
  std::erase_if(row.children, is_rivals);
  return predicted;
}

// "5+10": a rate for each stage.
[[nodiscard]] std::vector<double> read_rates(MapReader& reader) {
  const Node* node = reader.required("requests_per_second");
  if (node == nullptr) return {};
  std::vector<double> rates;
  for (std::size_t begin = 0; begin <= node->text.size();) {
    const std::size_t end = std::min(node->text.find('+', begin), node->text.size());
    Node part = *node;
    part.text = node->text.substr(begin, end - begin);
    reader.read(part, rates.emplace_back(), between(1e-6, 1e9));
    begin = end + 1;
  }
  return rates;
}

[[nodiscard]] ServedLoad read_load(MapReader& reader, ProblemList& problems) {
  ServedLoad load;
  for (const auto& [key, target] : {std::pair("machine", &load.machine), std::pair("model", &load.model)})
    reader.required(key, *target);
  reader.optional("weights", load.weights);
  reader.required("devices", load.devices, between(1, 1 << 20));
  for (const auto& [key, target] :
       {std::pair("prompt_tokens", &load.prompt_tokens), std::pair("output_tokens", &load.output_tokens),
        std::pair("max_num_seqs", &load.max_num_seqs),
        std::pair("max_num_batched_tokens", &load.max_num_batched_tokens)})
    reader.required(key, *target, between(1, kLongestContext));
  load.requests_per_second = read_rates(reader);
  double seconds = 1;
  reader.required("seconds_per_stage", seconds, between(1e-3, 1e9));
  load.stage = Seconds(seconds);
  double requests = 0;
  for (const double rate : load.requests_per_second) requests += rate * seconds;
  if (requests < 1 || requests > kMostRequestsOfARun)
    problems.add(*reader.node(), "requests_per_second: a run has at least 1 and at most 4194304 requests");
  reader.required("gpu_memory_utilization", load.gpu_memory_utilization, fraction());
  reader.required("enable_prefix_caching", load.enable_prefix_caching, kServedBools);
  return load;
}

[[nodiscard]] ServedFigure read_figure(Node row, ProblemList& problems) {
  ServedFigure figure;
  figure.line = row.place.line;
  figure.predicted_by = take_rivals(row, problems);
  MapReader reader(&row, "", problems);
  reader.required("experiment", figure.experiment);
  for (const auto& [key, target] : {std::pair("software", &figure.software), std::pair("workload", &figure.workload)})
    reader.optional(key, *target);
  reader.required("stage", figure.stage);
  figure.load = read_load(reader, problems);
  reader.optional("cpu_offload", figure.cpu_offload, kStatedWords);
  reader.required("metric", figure.metric, kServedMetricWords);
  double milliseconds = 1;
  reader.required("measured_ms", milliseconds, kServedMilliseconds);
  figure.measured = Seconds(milliseconds / 1e3);
  reader.finish();
  return figure;
}

}  // namespace

std::string_view name(ServedMetric metric) { return kServedMetricWords[static_cast<std::size_t>(metric)].first; }

std::vector<ServedFigure> read_serving_runs(const std::string& file, const std::string& text) {
  ProblemList problems(file);
  std::vector<ServedFigure> figures;
  std::map<std::tuple<std::string, std::string, ServedMetric>, int> line_of;
  for (Node& row : csv_rows(file, text, problems)) {
    const ServedFigure& figure = figures.emplace_back(read_figure(std::move(row), problems));
    const auto [first, is_new] =
        line_of.emplace(std::tuple(figure.experiment, figure.stage, figure.metric), figure.line);
    if (!is_new)
      problems.add({figure.line, 0}, "",
                   "metric: this stage's stands on line " + std::to_string(first->second) + " too; leave one out");
  }
  problems.throw_if_any();
  return figures;
}

std::vector<ServedFigure> read_serving_runs_file(const std::string& path) {
  return read_serving_runs(path, files::read_text(path, kLargestRunsFile));
}

}  // namespace dculab::config
