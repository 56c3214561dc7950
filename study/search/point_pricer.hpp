// Prices the points of a search.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/search_chunk.hpp"
#include "sim/cost/step_price.hpp"
#include "study/search/sweep_space.hpp"

namespace dculab::study {

// The shortest text that reads back as the same figure: what is compared and written must not be rounded.
[[nodiscard]] std::string whole_text(double figure);

// What a case comes to, by search_metrics(). Latencies that no request has are NaN.
struct CaseFigures {
  std::vector<double> figures;
  std::string bound;  // of a step; of served requests the one that holds them longest
};

// Prices steps and serves requests. One for each thread.
class CasePricer {
 public:
  // The case on `machine`. Valid until the next call.
  [[nodiscard]] const CaseFigures& price(const SweepCase& asked, const sim::Machine& machine);

 private:
  void price_step(const SweepCase& asked, const sim::Machine& machine);
  void serve(const SweepCase& asked, const sim::Machine& machine);

  CaseFigures priced_;
  sim::StepPrice step_;
};

// Prices points one by one. One for each thread.
class PointPricer {
 public:
  explicit PointPricer(const SweepSpace& space);

  // Adds the point to the chunk.
  void price(std::uint64_t point, config::SearchChunk& chunk);

  // What is asked at a point. Throws InputError when there can be no such step or server.
  [[nodiscard]] const SweepCase& at(std::uint64_t point) { return cursor_.at(point); }

 private:
  const SweepSpace& space_;
  SweepCursor cursor_;
  CasePricer pricer_;
};

// The first of space.asked() that `figures` have as NaN.
[[nodiscard]] std::optional<std::size_t> missing_metric(const SweepSpace& space, std::span<const double> figures);

// Whether a point meets objective.subject_to and the constraints of the study's scenario.
[[nodiscard]] bool meets_constraints(const SweepSpace& space, const SweepCase& asked, std::span<const double> figures);

}  // namespace dculab::study
