#include "cli/search_point.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>

#include "cli/output.hpp"
#include "cli/recommendation.hpp"
#include "config/scenario_document.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "sim/memory/capacity.hpp"

namespace dculab::cli {
namespace {

void put(std::string& bytes, std::uint64_t value) {
  for (std::size_t shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(value >> shift & 0xffU);
}

void put(std::string& bytes, const std::string& text) {
  put(bytes, text.size());
  bytes += text;
}

[[nodiscard]] std::uint64_t take_word(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (std::size_t index = 8; index-- > 0;) value = value << 8U | static_cast<unsigned char>(bytes[index]);
  bytes.remove_prefix(8);
  return value;
}

[[nodiscard]] std::string take_text(std::string_view& bytes) {
  const std::uint64_t size = take_word(bytes);
  std::string text(bytes.substr(0, size));
  bytes.remove_prefix(size);
  return text;
}

[[nodiscard]] std::uint8_t number_of(const std::string& bound, std::vector<std::string>& bounds) {
  const auto found = std::ranges::find(bounds, bound);
  const auto number = static_cast<std::uint8_t>(found - bounds.begin());
  if (found == bounds.end()) bounds.push_back(bound);
  return number;
}

// A reason is the same wherever the scenario lies.
[[nodiscard]] std::string without_file(std::string reason, const std::string& file) {
  if (reason.starts_with(file + ": ")) reason.erase(0, file.size() + 2);
  return reason;
}

[[nodiscard]] bool meets(const config::Constraint& constraint, double figure) {
  return constraint.comparison == config::Comparison::at_most ? figure <= constraint.value : figure >= constraint.value;
}

}  // namespace

std::size_t metric_index(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(kStepMetrics, name) - kStepMetrics.begin());
}

std::string metric_text(std::size_t metric, double figure) {
  if (kStepMetrics[metric] == "step_time") return config::short_text(Seconds(figure));
  if (kStepMetrics[metric] == "kv_bytes") return config::short_text(Bytes(figure));
  return kStepMetrics[metric] == "max_sequences" ? exact_number(figure) : number(figure);
}

std::string whole_text(double figure) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), figure).ptr};
}

std::string encode(const SearchChunk& chunk) {
  std::string bytes;
  put(bytes, chunk.refusal);
  put(bytes, chunk.bounds.size());
  for (const std::string& bound : chunk.bounds) put(bytes, bound);
  for (const SearchPoint& point : chunk.points) {
    bytes += static_cast<char>(point.outcome);
    bytes += static_cast<char>(point.bound);
    for (const double figure : point.figures) put(bytes, std::bit_cast<std::uint64_t>(figure));
  }
  return bytes;
}

SearchChunk decode(std::string_view bytes) {
  SearchChunk chunk;
  chunk.refusal = take_text(bytes);
  chunk.bounds.resize(take_word(bytes));
  for (std::string& bound : chunk.bounds) bound = take_text(bytes);
  while (!bytes.empty()) {
    SearchPoint& point = chunk.points.emplace_back();
    point.outcome = static_cast<Outcome>(bytes[0]);
    point.bound = static_cast<std::uint8_t>(bytes[1]);
    bytes.remove_prefix(2);
    for (double& figure : point.figures) figure = std::bit_cast<double>(take_word(bytes));
  }
  return chunk;
}

StepFigures step_figures(const StepPoint& step, const sim::Machine& machine, Seconds seconds) {
  const int context = step.plan.batch.sequences.front().context_tokens();
  const sim::Capacity fits = sim::capacity(machine, step.model, step.options, context);
  const double blocks = std::ceil(context / static_cast<double>(step.options.block_size));
  const auto sequences = static_cast<double>(step.plan.batch.sequences.size());
  return {seconds.value(), step.plan.batch.num_tokens() / seconds.value(),
          (sequences * blocks * fits.block_bytes).value(), static_cast<double>(fits.max_sequences)};
}

void PointPricer::price(std::uint64_t point, SearchChunk& chunk) {
  SearchPoint& priced = chunk.points.emplace_back();
  try {
    const StepPoint& step = cursor_.at(point);
    sim::price_step(step.machine, step.plan, price_);
    priced.figures = step_figures(step, step.machine, price_.seconds);
    priced.bound = number_of(step_bound(price_, step.machine), chunk.bounds);
    priced.outcome = meets_constraints(space_.scenario(), step, priced.figures) ? Outcome::met : Outcome::excluded;
  } catch (const InputError& error) {
    priced = {};
    if (chunk.refusal.empty()) chunk.refusal = without_file(error.what(), space_.scenario().file);
  }
}

bool meets_constraints(const config::Scenario& study, const StepPoint& step, const StepFigures& figures) {
  for (const config::Constraint& constraint : study.objective.subject_to)
    if (!meets(constraint, figures[metric_index(constraint.metric)])) return false;
  const auto look_up = [&](const std::string& name) {
    const std::size_t metric = metric_index(name);
    if (metric < figures.size()) return whole_text(figures[metric]);
    const config::Node* node = config::find_key(step.scenario.document, name);
    return node == nullptr ? std::string() : node->text;
  };
  return std::ranges::all_of(study.constraints,
                             [&](const config::Condition& condition) { return condition.holds(look_up); });
}

}  // namespace dculab::cli
