#include "config/search_reader.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "config/key_description.hpp"
#include "config/scenario_document.hpp"
#include "fields/printable_text.hpp"

namespace dculab::config {
namespace {

constexpr std::array<Metric, 33> kMetrics{{
    {"step_time", MetricKind::time},
    {"total_time", MetricKind::time},
    {"tokens_per_second", MetricKind::rate},
    {"output_tokens_per_second", MetricKind::rate},
    {"requests_per_second", MetricKind::rate},
    {"goodput", MetricKind::rate},
    {"kv_bytes", MetricKind::size},
    {"max_sequences", MetricKind::count},
    {"ttft_mean", MetricKind::time},
    {"ttft_p50", MetricKind::time},
    {"ttft_p90", MetricKind::time},
    {"ttft_p99", MetricKind::time},
    {"tpot_mean", MetricKind::time},
    {"tpot_p50", MetricKind::time},
    {"tpot_p90", MetricKind::time},
    {"tpot_p99", MetricKind::time},
    {"itl_mean", MetricKind::time},
    {"itl_p50", MetricKind::time},
    {"itl_p90", MetricKind::time},
    {"itl_p99", MetricKind::time},
    {"latency_mean", MetricKind::time},
    {"latency_p50", MetricKind::time},
    {"latency_p90", MetricKind::time},
    {"latency_p99", MetricKind::time},
    {"slowdown_mean", MetricKind::count},
    {"slowdown_p50", MetricKind::count},
    {"slowdown_p90", MetricKind::count},
    {"slowdown_p99", MetricKind::count},
    {"share_within_slo", MetricKind::count},
    {"tokens_per_second_per_user", MetricKind::rate},
    {"tokens_per_second_per_gpu", MetricKind::rate},
    {"joules_per_output_token", MetricKind::energy},
    {"usd_per_million_tokens", MetricKind::money},
}};

Choices<const Metric*> metric_choices() {
  Choices<const Metric*> choices;
  for (const Metric& metric : kMetrics) choices.emplace_back(metric.name, &metric);
  return choices;
}

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const Metric& metric : kMetrics) names.emplace_back(metric.name);
  return names;
}
constexpr Allowed kMetricWords{.names = metric_names};

double parse_figure(MetricKind kind, const std::string& text) {
  if (kind == MetricKind::time) return parse_in(Dimension::seconds, text);
  if (kind == MetricKind::size) return parse_in(Dimension::bytes, text);
  if (kind == MetricKind::energy) return parse_in(Dimension::energy, text);
  Node node;
  node.kind = NodeKind::scalar;
  node.text = text;
  double value = 0;
  read_scalar(node, value);
  return value;
}

// "<= 2 s"
Constraint parse_constraint(const Metric& metric, const std::string& text) {
  Constraint constraint{.metric = std::string(metric.name)};
  const bool at_most = text.starts_with("<=");
  if (!at_most && !text.starts_with(">=")) throw InputError(in_quotes(text) + " must begin with <= or >=");
  constraint.comparison = at_most ? Comparison::at_most : Comparison::at_least;
  const std::size_t begin = text.find_first_not_of(' ', 2);
  constraint.value = parse_figure(metric.kind, begin == std::string::npos ? "" : text.substr(begin));
  return constraint;
}

void read_subject_to(MapReader reader, std::vector<Constraint>& constraints) {
  for (const Metric& metric : kMetrics) {
    std::string text;
    const Node* node = reader.optional(metric.name);
    if (node == nullptr) continue;
    reader.read(*node, text);
    try {
      if (!text.empty()) constraints.push_back(parse_constraint(metric, text));
    } catch (const InputError& error) {
      reader.complain(*node, reader.path_to(metric.name) + ": " + error.what());
    }
  }
  reader.finish();
}

void read_goal(MapReader& reader, const Node& node, Goal goal, Objective& objective) {
  const Metric* metric = nullptr;
  reader.read_choice(node, metric, metric_choices());
  objective.goal = goal;
  if (metric != nullptr) objective.metric = metric->name;
}

struct ObjectiveKeys {
  using Target = Objective;
  static void read_smallest(MapReader& reader, const Node& node, Objective& objective) {
    read_goal(reader, node, Goal::minimize, objective);
  }
  static void read_largest(MapReader& reader, const Node& node, Objective& objective) {
    read_goal(reader, node, Goal::maximize, objective);
  }
  // The last one counts where both are there, which is refused.
  static constexpr auto keys =
      std::tuple(shaped("minimize", &read_smallest, {.words = kMetricWords}, "the best point has the least of it",
                        {.absent = "of a step `step_time`"}),
                 shaped("maximize", &read_largest, {.words = kMetricWords}, "the best point has the most of it",
                        {.absent = "of requests `output_tokens_per_second`"}));

  static void check(MapReader& reader, Objective&) {
    if ((reader.optional("maximize") == nullptr) == (reader.optional("minimize") == nullptr))
      reader.complain(*reader.node(), "objective: needs either maximize or minimize");
  }
};

void read_aims(MapReader& reader, const Node& node, Goal goal, std::vector<Aim>& aims) {
  if (node.kind != NodeKind::list)
    return reader.complain(node, reader.path_to(node.key) + ": must be a list of metrics such as [step_time]");
  for (const Node& child : node.children) {
    const Metric* metric = nullptr;
    reader.read_choice(child, metric, metric_choices());
    if (metric != nullptr) aims.push_back({goal, std::string(metric->name)});
  }
}

struct ParetoKeys {
  using Target = std::vector<Aim>;
  static void read_small(MapReader& reader, const Node& node, std::vector<Aim>& aims) {
    read_aims(reader, node, Goal::minimize, aims);
  }
  static void read_large(MapReader& reader, const Node& node, std::vector<Aim>& aims) {
    read_aims(reader, node, Goal::maximize, aims);
  }
  static constexpr Shape kMetricLists{.words = kMetricWords, .must_be_list = true};
  static constexpr auto keys =
      std::tuple(shaped("minimize", &read_small, kMetricLists, "metrics to be small, two or more in all"),
                 shaped("maximize", &read_large, kMetricLists, "metrics to be large"));

  static void check(MapReader& reader, std::vector<Aim>& aims) {
    if (aims.size() < 2) reader.complain(*reader.node(), "pareto: needs two metrics or more");
  }
};

}  // namespace

std::span<const Metric> metrics() { return kMetrics; }

void read_objective(MapReader reader, Objective& objective) {
  if (!reader.is_present()) return;
  read_keys<ObjectiveKeys>(reader, objective);
  read_subject_to(reader.optional_map("subject_to"), objective.subject_to);
  reader.finish();
}

std::vector<FileKey> objective_keys() {
  std::vector<FileKey> keys = keys_of<ObjectiveKeys>();
  std::vector<FileKey> limits;
  for (const Metric& metric : kMetrics) {
    FileKey& limit = limits.emplace_back(FileKey{.key = std::string(metric.name)});
    limit.meaning = "`<= ...` or `>= ...`, with its unit";
    limit.absent = "no limit";
    limit.values = {{.kind = ValueKind::text}};
  }
  keys.push_back(
      map_key("subject_to", "limits that the best point keeps: `{ttft_p90: \"<= 2 s\"}`", std::move(limits)));
  return keys;
}

void read_pareto(MapReader reader, std::vector<Aim>& aims) { read_section<ParetoKeys>(std::move(reader), aims); }

std::vector<FileKey> pareto_keys() { return keys_of<ParetoKeys>(); }

void read_constraints(Scenario& scenario, const Node& document, ProblemList& problems) {
  MapReader reader(&document, "", problems);
  const Node* list = reader.optional("constraints");
  if (list == nullptr) return;
  if (list->kind != NodeKind::list)
    return reader.complain(*list, "constraints: must be a list such as [workload.batch <= max_sequences]");
  const auto is_known = [&](const std::string& name) {
    return std::ranges::any_of(kMetrics, [&name](const Metric& metric) { return metric.name == name; }) ||
           std::ranges::any_of(scenario.sweep, [&name](const SweepAxis& axis) { return axis.key == name; }) ||
           find_key(document, name) != nullptr;
  };
  for (const Node& child : list->children) {
    try {
      std::string text;
      read_scalar(child, text);
      const Condition condition = Condition::parse(text, is_known);
      for (const Metric& metric : kMetrics) {
        if (metric.kind == MetricKind::time) condition.require_unit(std::string(metric.name), Dimension::seconds);
        if (metric.kind == MetricKind::size) condition.require_unit(std::string(metric.name), Dimension::bytes);
        if (metric.kind == MetricKind::energy) condition.require_unit(std::string(metric.name), Dimension::energy);
      }
      scenario.constraints.push_back(condition);
    } catch (const InputError& error) {
      reader.complain(child, std::string("constraints: ") + error.what());
    }
  }
}

}  // namespace dculab::config
