// What published figures teach of machines and of what runs there, and how far a prediction can then be trusted.
//
// A figure of sim/calibration/parameters.hpp is what the files say, times what is learned of the groups that a point
// belongs to (sim/study/point_groups.hpp).
//
// So a machine that no point was measured on is predicted with what is known of its vendor, of the program on others of
// that vendor, and of host times anywhere.
//
// A source's time (the clock it ran at, how it timed) is of how its rows were measured, and no part of a
// prediction.
//
// A row's residual is in sigmas of its own: what the cost law is taken to leave out (kModelLogSigma), the spread that
// its publication admits, and, in a second fit, that of its source's rows about the first. Rows that one source
// measured of one kind in one place err alike, so that many of them count as few (Kish 1965, "Survey Sampling", design
// effect).
//
// How far a prediction holds: sim/study/point_intervals.hpp.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "sim/calibration/crossed_effects.hpp"
#include "sim/calibration/parameters.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/study/measured_run.hpp"
#include "sim/study/point_intervals.hpp"

namespace dculab::sim {

struct MeasuredPoint {
  std::string source;
  std::string clock{};               // the state that the source tells, "" if none
  const Machine* machine = nullptr;  // as its file has it, with the stack that ran
  const MeasuredRun* measured_run = nullptr;
  Seconds time;
  double spread = 0;  // of the measurement, relative, as its publication admits
};

class PointCalibration {
 public:
  // Precondition: at least 1 point; none is below its run_floor.
  explicit PointCalibration(std::span<const MeasuredPoint> points);

  // A machine's file with what was learned of the device; what `machine.stack` reaches there; and a stack's file with
  // its host times.
  [[nodiscard]] Machine device(const Machine& machine) const;
  [[nodiscard]] Reached reached(const Machine& machine) const;
  [[nodiscard]] Stack anywhere(Stack stack) const;

  [[nodiscard]] bool has_seen(lower::Vendor vendor) const;
  [[nodiscard]] bool has_seen(const Stack& stack) const;  // its program
  [[nodiscard]] bool has_seen(const std::string& machine) const;
  [[nodiscard]] int points() const { return points_; }

  // Whether points of that machine, or where the figure is not the device's of `machine.stack` there, depend on it.
  [[nodiscard]] bool tell(const Machine& machine, const Parameter& parameter) const;

  // How well prices of `machine.stack` hold there.
  [[nodiscard]] PointIntervals intervals(const Machine& machine) const;

  // Median |error| of the vendor's rows, each predicted without those of its machine.
  [[nodiscard]] std::optional<double> machine_error(lower::Vendor vendor) const {
    return table_.median_error(Distance::machine, std::string(lower::name(vendor)));
  }

  // By group, "host times", "vendor hygon", "family gfx936", "machine NAME", "program NAME", "stack NAME", "NAME on
  // hygon", "stack NAME on hygon", "NAME for gfx936", "source NAME": the logarithms added to each of parameters(), and
  // to the time.
  [[nodiscard]] const Effects& effects() const { return fit_->effects(); }

 private:
  std::shared_ptr<const CrossedEffects> fit_;
  std::map<std::pair<std::string, std::string>, int> rows_;  // by machine and stack
  std::map<std::pair<std::string, std::string>, std::set<std::string_view>>
      moving_;                              // by both: figures points move with
  std::map<std::string, Overheads> hosts_;  // by stack: as it had them on a machine
  int points_ = 0;
  IntervalTable table_;
};

}  // namespace dculab::sim
