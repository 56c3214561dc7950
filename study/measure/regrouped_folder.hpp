// A model folder with fewer KV heads than the one that it is made from.
#pragma once

#include <cstddef>
#include <string>

#include "engine/measure/step_bench.hpp"
#include "engine/regroup/regroup.hpp"
#include "model/model_shape.hpp"

namespace dculab::study {

// Fewer tokens of calibration text say nothing about the heads.
inline constexpr int kFewestCalibrationTokens = 64;

struct RegroupQuestion {
  std::string model;  // a folder, or a name under scenarios/models
  engine::RegroupOptions options{};
  std::string calibration;        // a text file that heads are compared on; empty: none
  int calibration_tokens = 8192;  // of it, at most
  int num_threads = 0;            // 0 = all cores
  std::string folder;             // the new one, which is empty or not there
};

struct RegroupedFolder {
  ModelShape before;
  engine::Regrouping result;
  std::size_t calibration_tokens = 0;  // that were read
};

// Throws InputError where heads are compared on text, and there is none.
void require_calibration(const RegroupQuestion& question);

// Writes the folder whole or not at all. Throws InputError, as far as it can before weights are loaded.
[[nodiscard]] RegroupedFolder regroup_folder(const RegroupQuestion& question, const engine::BenchProgress& progress);

}  // namespace dculab::study
