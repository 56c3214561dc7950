// What a search knows of a point once it is priced, and how a chunk of points is kept in a journal.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/sweep_space.hpp"
#include "sim/cost/step_price.hpp"

namespace dculab::cli {

// The metrics of a step, by the names that a scenario's objective uses.
inline constexpr std::array<std::string_view, 4> kStepMetrics{"step_time", "tokens_per_second", "kv_bytes",
                                                              "max_sequences"};
using StepFigures = std::array<double, kStepMetrics.size()>;  // s, 1/s, B, 1

[[nodiscard]] std::size_t metric_index(std::string_view name);  // kStepMetrics.size(): none of a step
[[nodiscard]] std::string metric_text(std::size_t metric, double figure);
// The shortest text that reads back as the same figure: what is compared and written must not be rounded.
[[nodiscard]] std::string whole_text(double figure);

enum class Outcome : std::uint8_t {
  met,       // priced, and all constraints hold
  excluded,  // a constraint does not hold
  refused,   // there can be no such step
};

struct SearchPoint {
  Outcome outcome = Outcome::refused;
  std::uint8_t bound = 0;  // of SearchChunk::bounds
  StepFigures figures{};   // of a refused point 0
};

struct SearchChunk {
  std::vector<SearchPoint> points;
  std::vector<std::string> bounds;
  std::string refusal;  // of the first refused point; empty where there is none
};

[[nodiscard]] std::string encode(const SearchChunk& chunk);
// Precondition: `bytes` comes from encode().
[[nodiscard]] SearchChunk decode(std::string_view bytes);

// Prices points one by one. One for each thread.
class PointPricer {
 public:
  explicit PointPricer(const SweepSpace& space) : space_(space), cursor_(space) {}

  // Adds the point to the chunk.
  void price(std::uint64_t point, SearchChunk& chunk);

  // The step of a point. Throws InputError when there can be none.
  [[nodiscard]] const StepPoint& step(std::uint64_t point) { return cursor_.at(point); }

 private:
  const SweepSpace& space_;
  SweepCursor cursor_;
  sim::StepPrice price_;
};

// Whether a point meets objective.subject_to and the constraints of the study's scenario.
[[nodiscard]] bool meets_constraints(const config::Scenario& study, const StepPoint& step, const StepFigures& figures);

// The figures of a step that takes `seconds`.
[[nodiscard]] StepFigures step_figures(const StepPoint& step, const sim::Machine& machine, Seconds seconds);

}  // namespace dculab::cli
