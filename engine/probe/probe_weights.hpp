// A matrix of any format that the CPU kernels multiply, with values that toggle as real ones do, for the probe.
#pragma once

#include <cstddef>
#include <vector>

#include "core/dtype.hpp"
#include "kernels/ops.hpp"

namespace dculab::engine {

class ProbeWeights {
 public:
  // [rows, columns]; int4 in groups of 128, int8 with one scale a row, FP8 with one for 128 x 128. Columns are a
  // multiple of 128.
  ProbeWeights(Dtype dtype, int rows, int columns);

  // With in-features in their own order. Valid while this object lives.
  [[nodiscard]] const kernels::WeightView& view() const { return view_; }
  [[nodiscard]] std::size_t size() const { return size_; }  // bytes behind view()

 private:
  [[nodiscard]] unsigned random();
  [[nodiscard]] std::byte* allocate(std::size_t bytes);
  void fill_floats(Dtype dtype, int rows, int columns);
  void fill_fp8(int rows, int columns);
  void fill_integers(Dtype dtype, int rows, int columns);

  std::vector<std::byte> memory_;
  std::vector<float> scales_;  // of FP8
  kernels::WeightView view_;
  std::size_t size_ = 0;
  unsigned state_ = 1;
};

}  // namespace dculab::engine
