// A CSV of published points with what each is priced as: the input of `validate --points`.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "config/points_file.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/study/point_calibration.hpp"
#include "study/scenario/stacks.hpp"
#include "study/validate/published_points.hpp"

namespace dculab::study {

// A published point that can be priced, or why it cannot.
struct ReadPoint {
  config::PublishedPoint point;
  PricedAs priced;
  std::string unpriced;  // why there is nothing to price it as; "" otherwise
  std::string refused;   // below what the machine's peaks allow; "" otherwise

  [[nodiscard]] bool is_scored() const { return unpriced.empty() && refused.empty(); }
};

// What a point is run on: the machine, its clock, the software ("" for what is_of_hardware) and the kernel.
using MachineKey = std::array<std::string, 5>;
[[nodiscard]] MachineKey key_of(const config::PublishedPoint& point);

struct RunBy {
  sim::Machine machine;                         // as the file has it, at that clock, running the software (as_run_by)
  const PublishedSoftware* software = nullptr;  // null for what is_of_hardware
};

struct PointSet {
  std::map<MachineKey, RunBy> machines;
  std::vector<sim::Stack> stacks = shipped_stacks();
  std::vector<ReadPoint> points;

  [[nodiscard]] const sim::Machine& machine_of(const ReadPoint& read) const {
    return machines.at(key_of(read.point)).machine;
  }
};

// Throws InputError when the file cannot be read; a point that cannot be priced says so itself.
[[nodiscard]] PointSet read_point_set(const std::string& file);

[[nodiscard]] sim::PointOrigin origin_of(const config::PublishedPoint& point);

// What a calibration sees of a point that is scored. It refers to `set`.
[[nodiscard]] sim::MeasuredPoint measured(const PointSet& set, const ReadPoint& read);

}  // namespace dculab::study
