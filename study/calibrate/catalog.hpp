// Machines and stacks by name: as their files have them, or with what published points taught of them. What points are
// priced on, and what `calibrate --points` writes.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/hardware/machine.hpp"
#include "sim/study/point_calibration.hpp"

namespace dculab::study {

class Catalog {
 public:
  // As the files of the data folders have them.
  Catalog();

  // With what `learned` says. `libraries`: bare kernel libraries, which have no stack files.
  Catalog(std::shared_ptr<const sim::PointCalibration> learned, const std::vector<sim::Stack>& libraries);

  // Throws InputError where there is none of that name.
  [[nodiscard]] const sim::Machine& machine(const std::string& name);

  [[nodiscard]] std::span<const sim::Stack> stacks() const { return stacks_; }

  // hwmodels/ and stacks/ below `folder`, of every machine and stack that something was learned of: a data folder that
  // every command reads. Returns the files, from there. Throws InputError where one cannot be written. Precondition:
  // something was learned.
  std::vector<std::filesystem::path> write(const std::filesystem::path& folder);

 private:
  std::shared_ptr<const sim::PointCalibration> learned_;
  std::vector<sim::Stack> stacks_;  // of files
  std::vector<sim::Stack> files_;   // the same without what was learned, and the libraries
  std::map<std::string, sim::Machine> machines_;
};

// How well prices of a stack hold on a machine where something was learned of both.
struct LearnedIntervals {
  std::string machine, stack;
  sim::PointIntervals intervals;
};

// Of each of the catalog's machines, by name.
[[nodiscard]] std::vector<LearnedIntervals> learned_intervals(Catalog& catalog);

}  // namespace dculab::study
