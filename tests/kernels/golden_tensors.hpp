// The tensors of tests/golden/kernels, and how far a reference may be from values computed in double.
#pragma once

#include <cmath>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/safetensors.hpp"

namespace dculab::kernels {

class GoldenTensors {
 public:
  // `file` without folder and ending. Contents: scripts/golden/make_kernel_goldens.py.
  explicit GoldenTensors(const std::string& file)
      : file_(std::filesystem::path(DCULAB_SOURCE_DIR) / "tests/golden/kernels" / (file + ".safetensors")),
        tensors_(engine::read_tensor_table(file_.bytes(), file)) {}

  [[nodiscard]] bool has(const std::string& tensor) const { return tensors_.contains(tensor); }
  [[nodiscard]] int size(const std::string& tensor, std::size_t dimension) const {
    return static_cast<int>(tensors_.at(tensor).shape.at(dimension));
  }
  [[nodiscard]] const engine::TensorTable& all() const { return tensors_; }

  // Empty when there is no such tensor.
  template <typename T>
  [[nodiscard]] std::vector<T> read(const std::string& tensor) const {
    if (!has(tensor)) return {};
    const auto bytes = tensors_.at(tensor).bytes;
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

 private:
  engine::MappedFile file_;
  engine::TensorTable tensors_;
};

// The largest error in roundings to F32 (half a unit in the last place); 1 is what a correct result may have.
// Values below 1e-8 count as 1e-8: there the two doubles may differ by cancellation. NaN counts as infinite.
inline double worst_roundings(std::span<const float> got, std::span<const double> expected) {
  double worst = got.size() == expected.size() && !got.empty() ? 0.0 : INFINITY;
  for (std::size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    const double error = std::abs(got[i] - expected[i]) / (0x1p-24 * std::max(std::abs(expected[i]), 1e-8));
    worst = std::max(worst, std::isnan(error) ? INFINITY : error);
  }
  return worst;
}
constexpr double kOneRounding = 1.0 + 1e-6;  // doubles summed in another order may tip a rounding

}  // namespace dculab::kernels
