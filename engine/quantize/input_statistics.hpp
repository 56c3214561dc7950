// What calibration text says about the inputs of a matmul: the Hessian of its squared output error, and the largest
// activation of each in-feature.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/cpu_kernels.hpp"

namespace dculab::engine {

class InputStatistics {
 public:
  explicit InputStatistics(int columns);

  // `input` is [tokens, columns]. Throws InputError when it holds something that is not finite.
  void add(kernels::cpu::ThreadPool& threads, std::span<const float> input);

  [[nodiscard]] int columns() const { return columns_; }
  [[nodiscard]] std::int64_t tokens() const { return tokens_; }
  // [columns, columns], 2/N sum x x^T over the N tokens. Precondition: tokens() > 0.
  [[nodiscard]] std::vector<float> hessian() const;
  [[nodiscard]] std::span<const float> largest() const { return largest_; }  // [columns] max |x|

 private:
  int columns_;
  std::int64_t tokens_ = 0;
  std::vector<double> products_;   // [columns, columns] sum x x^T
  std::vector<float> largest_;     // [columns]
  std::vector<float> transposed_;  // [columns, tokens of a batch], F32
  std::vector<float> batch_;       // [columns, columns] of one batch
  kernels::cpu::Workspace workspace_;
};

}  // namespace dculab::engine
