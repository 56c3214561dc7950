// Do the GPU's products add a bias to each column, in every kernel that may be the last of a product?
#include <algorithm>
#include <cmath>

#include "kernels/number_format.hpp"
#include "lower/dculab_gpu/geometry.hpp"
#include "lower/dculab_gpu/gptq_plan.hpp"
#include "tests/kernels/gpu/device_under_test.hpp"
#include "tests/kernels/gpu/matmul_cases.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels::gpu {
namespace {

// `multiply(y, bias)` starts the product. A compiler may fuse the last multiplication with the addition. Compared with
// a bias of zeros, because without any the vendor's library may multiply, which adds in another order.
template <typename Multiply>
void check_bias(Device& device, const MatmulShape& shape, Multiply multiply) {
  TensorSource source(5);
  const auto n = static_cast<std::size_t>(shape.n), count = static_cast<std::size_t>(shape.m) * n;
  const auto bias = source.floats(n);
  const DeviceTensor device_bias(device, bias), zeros(device, std::vector<float>(n)), y(device, count * sizeof(float));
  multiply(Output{y.as(), Dtype::f32}, zeros.template as<float>());
  const auto without = y.read<float>();
  multiply(Output{y.as(), Dtype::f32}, device_bias.template as<float>());
  const auto with = y.read<float>();
  for (std::size_t i = 0; i < count; ++i) {
    CAPTURE(i);
    REQUIRE(std::abs(with[i] - (without[i] + bias[i % n])) <=
            0x1p-23F * (std::abs(without[i]) + std::abs(bias[i % n])));
  }
}

// A row and several, with and without parts of k.
constexpr MatmulShape kBiasShapes[] = {{1, 37, 1056}, {5, 37, 96}, {9, 37, 64}, {33, 136, 1056}, {130, 40, 64}};

}  // namespace

TEST_CASE("GPU matmul adds a bias", "[gpu][matmul]") {
  for (const MatmulShape& shape : kBiasShapes)
    for_each_device([&](Device& device) {
      CAPTURE(shape.m, shape.n, shape.k);
      TensorSource source(1);
      const DeviceTensor x(device, source.stored(static_cast<std::size_t>(shape.m * shape.k), Dtype::f16));
      const DeviceTensor w(device, source.stored(static_cast<std::size_t>(shape.n * shape.k), Dtype::f16));
      const DeviceTensor workspace(device, matmul_workspace(shape.m, shape.n, shape.k) * sizeof(float));
      check_bias(device, shape, [&](Output y, const float* bias) {
        device.matmul({.x = {x.as(), Dtype::f16},
                       .w = {w.as(), Dtype::f16},
                       .y = y,
                       .m = shape.m,
                       .n = shape.n,
                       .k = shape.k,
                       .y_stride = shape.n,
                       .workspace = workspace.as<float>(),
                       .bias = bias});
      });
    });
}

TEST_CASE("GPU int8_matmul adds a bias", "[gpu][int8_matmul]") {
  for (const MatmulShape& shape : kBiasShapes)
    for_each_device([&](Device& device) {
      CAPTURE(shape.m, shape.n, shape.k);
      TensorSource source(2);
      const auto integers = [&](int count) {
        std::vector<std::int8_t> values(static_cast<std::size_t>(count));
        for (auto& value : values) value = static_cast<std::int8_t>(source.integer(-127, 127));
        return values;
      };
      const DeviceTensor x(device, integers(shape.m * shape.k)), w(device, integers(shape.n * shape.k));
      const DeviceTensor x_scale(device, source.floats(static_cast<std::size_t>(shape.m), 0.01F));
      const DeviceTensor w_scale(device, source.floats(static_cast<std::size_t>(shape.n), 0.01F));
      check_bias(device, shape, [&](Output y, const float* bias) {
        device.int8_matmul({.x = x.as<std::int8_t>(),
                            .x_scale = x_scale.as<float>(),
                            .w = w.as<std::int8_t>(),
                            .w_scale = w_scale.as<float>(),
                            .y = y,
                            .m = shape.m,
                            .n = shape.n,
                            .k = shape.k,
                            .y_stride = shape.n,
                            .bias = bias});
      });
    });
}

TEST_CASE("GPU gptq_matmul adds a bias", "[gpu][gptq]") {
  for (MatmulShape shape : kBiasShapes) {
    shape.n = shape.n / 8 * 8;
    for_each_device([&](Device& device) {
      CAPTURE(shape.m, shape.n, shape.k);
      TensorSource source(3);
      const auto words = [&](int count) {
        std::vector<std::uint32_t> values(static_cast<std::size_t>(count));
        for (auto& value : values) value = static_cast<std::uint32_t>(source.engine()());
        return values;
      };
      const int groups = shape.k / 32;
      const DeviceTensor x(device, source.stored(static_cast<std::size_t>(shape.m * shape.k), Dtype::f16));
      const DeviceTensor qweight(device, words(shape.k / 8 * shape.n)), qzeros(device, words(groups * shape.n / 8));
      const DeviceTensor scales(
          device, std::vector<std::uint16_t>(static_cast<std::size_t>(groups * shape.n), f16_from_f32(0.01F)));
      const DeviceTensor workspace(device, gptq_matmul_workspace(shape.m, shape.n, shape.k) * sizeof(float));
      check_bias(device, shape, [&](Output y, const float* bias) {
        device.gptq_matmul({.x = {x.as(), Dtype::f16},
                            .weight = {.qweight = qweight.as<std::uint32_t>(),
                                       .qzeros = qzeros.as<std::uint32_t>(),
                                       .scales = scales.as<std::uint16_t>(),
                                       .in_features = shape.k,
                                       .out_features = shape.n,
                                       .group_size = 32,
                                       .zero_offset = 0},
                            .y = y,
                            .m = shape.m,
                            .y_stride = shape.n,
                            .workspace = workspace.as<float>(),
                            .bias = bias});
      });
    });
  }
}

}  // namespace dculab::kernels::gpu
