#include "engine/quantize/input_statistics.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace dculab::engine {
namespace {

constexpr std::size_t kTokenMultiple = 16;  // what the kernels' vectors like; zeros fill up

}  // namespace

InputStatistics::InputStatistics(int columns)
    : columns_(columns),
      products_(static_cast<std::size_t>(columns) * static_cast<std::size_t>(columns)),
      largest_(static_cast<std::size_t>(columns)),
      batch_(products_.size()) {}

void InputStatistics::add(kernels::cpu::ThreadPool& threads, std::span<const float> input) {
  const auto columns = static_cast<std::size_t>(columns_);
  const std::size_t tokens = input.size() / columns;
  const std::size_t padded = (tokens + kTokenMultiple - 1) / kTokenMultiple * kTokenMultiple;
  transposed_.assign(columns * padded, 0.0F);
  for (std::size_t token = 0; token < tokens; ++token)
    for (std::size_t column = 0; column < columns; ++column) {
      const float value = input[token * columns + column];
      if (!std::isfinite(value))
        throw InputError("the calibration text leads to activations that are not finite (NaN or infinity)");
      transposed_[column * padded + token] = value;
      largest_[column] = std::max(largest_[column], std::abs(value));
    }
  kernels::MatmulArgs args;
  args.x = transposed_.data();
  args.weights[0] = {.data = transposed_.data(), .dtype = Dtype::f32, .rows = columns_};
  args.y = batch_.data();
  args.m = columns_;
  args.k = static_cast<int>(padded);
  kernels::cpu::matmul(threads, workspace_, args);
  for (std::size_t i = 0; i < products_.size(); ++i) products_[i] += static_cast<double>(batch_[i]);
  tokens_ += static_cast<std::int64_t>(tokens);
}

std::vector<float> InputStatistics::hessian() const {
  std::vector<float> hessian(products_.size());
  const double scale = 2.0 / static_cast<double>(tokens_);
  std::ranges::transform(products_, hessian.begin(),
                         [scale](double product) { return static_cast<float>(scale * product); });
  return hessian;
}

}  // namespace dculab::engine
