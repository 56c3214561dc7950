// CSVs of published points with what each is priced as: the input of `validate --points`.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/points_file.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/study/point_calibration.hpp"
#include "study/calibrate/catalog.hpp"
#include "study/validate/published_points.hpp"

namespace dculab::study {

// A published point that can be priced, or why it cannot.
struct ReadPoint {
  config::PublishedPoint point;
  PricedAs priced;
  std::string unpriced;  // why there is nothing to price it as; "" otherwise
  std::string refused;   // below what the machine's peaks allow; "" otherwise

  [[nodiscard]] bool is_scored() const { return unpriced.empty() && refused.empty(); }
  [[nodiscard]] bool teaches() const { return is_scored() && priced.silent.empty(); }
};

struct RunBy {
  sim::Machine machine;  // as the catalog has it, at that clock, running the software (as_run_by)
  const PublishedSoftware* software = nullptr;  // null for what is_of_hardware
};

// What runs points, by machine, clock, software and kernel.
class Runs {
 public:
  Runs() = default;
  explicit Runs(std::shared_ptr<const sim::PointCalibration> learned);

  // Throws InputError where it is not known.
  [[nodiscard]] const RunBy& of(const config::PublishedPoint& point);

 private:
  using Key = std::array<std::string, 5>;  // "" for software of what is_of_hardware

  Catalog catalog_;
  std::map<Key, RunBy> known_;
};

struct PointSet {
  Runs runs;  // as the files have them
  std::vector<ReadPoint> points;
};

// Throws InputError when a file cannot be read; a point that cannot be priced says so itself.
[[nodiscard]] PointSet read_point_set(const std::vector<std::string>& files);

// "llama.cpp" of "llama.cpp HIP", "" for what is_of_hardware.
[[nodiscard]] std::string program_of(const config::PublishedPoint& point);

// Who published it: the repository or thread, "github.com/ROCm/aiter", or all that is said of another source.
[[nodiscard]] std::string source_of(const config::PublishedPoint& point);

// What is learned from all points that teach, but those of which `is_left_out` holds. Throws InputError where there are
// none.
[[nodiscard]] std::shared_ptr<const sim::PointCalibration> learn_from(
    PointSet& set, const std::function<bool(const ReadPoint&)>& is_left_out = [](const ReadPoint&) { return false; });

// Machines and stacks as `learned` has them.
[[nodiscard]] Catalog learned_catalog(std::shared_ptr<const sim::PointCalibration> learned);

}  // namespace dculab::study
