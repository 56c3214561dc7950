// Are the GPU's int8 products exact up to the scale, and its quantised rows the reference's bytes?
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/gpu/device_under_test.hpp"
#include "tests/kernels/gpu/weight_loads.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels::gpu {
namespace {

struct Int8Problem {
  int m, n, k;
  std::vector<std::int8_t> x, w;
  std::vector<float> x_scale, w_scale;

  Int8Problem(int rows, int columns, int depth) : m(rows), n(columns), k(depth) {
    TensorSource source(static_cast<unsigned>(m + n + k));
    for (int i = 0; i < m * k; ++i) x.push_back(static_cast<std::int8_t>(source.integer(-127, 127)));
    for (int i = 0; i < n * k; ++i) w.push_back(static_cast<std::int8_t>(source.integer(-128, 127)));
    x_scale = source.floats(static_cast<std::size_t>(m), 0.01F);
    w_scale = source.floats(static_cast<std::size_t>(n), 0.01F);
  }

  [[nodiscard]] std::vector<float> expected() const {
    std::vector<float> y(static_cast<std::size_t>(m * n));
    reference::int8_matmul({x.data(), x_scale.data(), w.data(), w_scale.data(), y.data(), m, n, k});
    return y;
  }

  // [m, y_stride]; what nothing was written to is NaN.
  [[nodiscard]] std::vector<float> run(Device& device, Dtype y_dtype, int y_stride) const {
    const DeviceTensor device_x(device, x), device_w(device, w, OperandRole::weight);
    const DeviceTensor device_x_scale(device, x_scale), device_w_scale(device, w_scale);
    const DeviceTensor y(device, bytes_of(y_dtype, static_cast<std::size_t>(m * y_stride)));
    device.int8_matmul({.x = device_x.as<std::int8_t>(),
                        .x_scale = device_x_scale.as<float>(),
                        .w = device_w.as<std::int8_t>(),
                        .w_scale = device_w_scale.as<float>(),
                        .y = {y.as(), y_dtype},
                        .m = m,
                        .n = n,
                        .k = k,
                        .y_stride = y_stride});
    return y.read_numbers(y_dtype);
  }

  // Three roundings in f32 (the sum to f32, the product of the scales, the product of both), then one to the format.
  void check(Dtype y_dtype, int y_stride) const {
    const auto truth = expected();
    for_each_device([&](Device& device) {
      const auto got = run(device, y_dtype, y_stride);
      for (int row = 0; row < m; ++row) {
        for (int column = 0; column < y_stride; ++column) {
          const double value = got[static_cast<std::size_t>(row * y_stride + column)];
          INFO("row " << row << ", column " << column);
          if (column >= n) {
            REQUIRE(std::isnan(value));
            continue;
          }
          const double exact = truth[static_cast<std::size_t>(row * n + column)];
          const double smallest = y_dtype == Dtype::f16 ? 0x1p-25 : 0.0;  // half of the last bit of a subnormal
          REQUIRE(std::abs(value - exact) <= (3.01 * 0x1p-24 + rounding(y_dtype)) * std::abs(exact) + smallest);
        }
      }
    });
  }
};

}  // namespace

TEST_CASE("GPU int8_matmul of a few rows is exact up to the scale", "[gpu][int8_matmul]") {
  const int m = GENERATE(1, 2, 3, 5, 8);
  const auto [n, k] = GENERATE(table<int, int>({{1, 16}, {63, 80}, {129, 528}, {3, 2064}}));
  const Dtype y = GENERATE(Dtype::f32, Dtype::f16);
  CAPTURE(m, n, k, name(y));
  Int8Problem(m, n, k).check(y, n + 2);
}

TEST_CASE("GPU int8_matmul of one row is exact where x takes several slabs", "[gpu][int8_matmul]") {
  Int8Problem(1, 5, 16 * 1024 + 16).check(Dtype::f32, 5);
}

TEST_CASE("GPU int8_matmul of many rows is exact up to the scale", "[gpu][int8_matmul]") {
  const auto [m, n, k] =
      GENERATE(table<int, int, int>({{9, 1, 16}, {9, 129, 528}, {33, 63, 80}, {65, 129, 16}, {130, 63, 144}}));
  const Dtype y = GENERATE(Dtype::f32, Dtype::f16);
  CAPTURE(m, n, k, name(y));
  Int8Problem(m, n, k).check(y, n + 1);
}

TEST_CASE("GPU int8_matmul holds the largest sums", "[gpu][int8_matmul]") {
  const int m = GENERATE(1, 9);
  Int8Problem problem(m, 1, (1 << 17) - 16);
  std::fill(problem.x.begin(), problem.x.end(), std::int8_t{127});
  std::fill(problem.w.begin(), problem.w.end(), std::int8_t{-128});
  problem.check(Dtype::f32, 1);
}

TEST_CASE("GPU int8_matmul of a few rows loads every weight byte once", "[gpu][int8_matmul][trace]") {
  host::AddressRecorder recorder;
  const auto device = open_host_device({.wave_size = 64, .recorder = &recorder});
  (void)Int8Problem(4, 21, 1040).run(*device, Dtype::f16, 21);
  const WeightLoads loads = weight_loads(recorder.take("int8_gemv_kernel"));
  CHECK(loads.is_sixteen_per_lane);
  CHECK(loads.all_are(1));
}

TEST_CASE("GPU quantize_rows gives the reference's bytes and scales", "[gpu][quantize_rows]") {
  const Dtype dtype = GENERATE(Dtype::f32, Dtype::f16);
  const int k = GENERATE(1, 7, 16, 520, 4099);
  CAPTURE(name(dtype), k);
  constexpr int kRows = 3;
  TensorSource source(11);
  auto x = source.stored(static_cast<std::size_t>(kRows * k), dtype, 3.0F);
  std::fill_n(x.begin(), bytes_of(dtype, static_cast<std::size_t>(k)), std::byte{0});  // a row of zeros
  const auto wide = widen(x, dtype);
  std::vector<std::int8_t> expected(static_cast<std::size_t>(kRows * k));
  std::vector<float> scale(kRows);
  reference::quantize_rows({wide.data(), expected.data(), scale.data(), kRows, k});
  CHECK(scale[0] == 0);
  for_each_device([&](Device& device) {
    const DeviceTensor device_x(device, x), out(device, expected.size()), out_scale(device, kRows * sizeof(float));
    device.quantize_rows({{device_x.as(), dtype}, out.as<std::int8_t>(), out_scale.as<float>(), kRows, k});
    CHECK(out.read<std::int8_t>() == expected);
    CHECK(out_scale.read<float>() == scale);
  });
}

TEST_CASE("GPU quantize_rows rounds ties to even and stays within 127", "[gpu][quantize_rows]") {
  // 127 gives the scale 1. The smallest number gives 0 (127 of it would be less than 1), its 254-fold 2 of it.
  const float smallest = std::numeric_limits<float>::denorm_min();
  const std::vector<float> x = {127.0F,   0.5F, 1.5F, 2.5F, -0.5F, -2.5F, -126.5F, -127.0F,        smallest,
                                0.0F,     0.0F, 0.0F, 0.0F, 0.0F,  0.0F,  0.0F,    190 * smallest, -190 * smallest,
                                smallest, 0.0F, 0.0F, 0.0F, 0.0F,  0.0F};
  const std::vector<std::int8_t> expected = {127, 0, 2, 2, 0,   -2,   -126, -127, 0, 0, 0, 0,
                                             0,   0, 0, 0, 127, -127, 1,    0,    0, 0, 0, 0};
  for_each_device([&](Device& device) {
    const DeviceTensor device_x(device, x), out(device, expected.size()), scale(device, 3 * sizeof(float));
    device.quantize_rows({{device_x.as(), Dtype::f32}, out.as<std::int8_t>(), scale.as<float>(), 3, 8});
    CHECK(out.read<std::int8_t>() == expected);
    CHECK(scale.read<float>() == std::vector<float>{1.0F, 0.0F, smallest});
  });
}

TEST_CASE("GPU int8_matmul refuses what it has no kernel for", "[gpu][int8_matmul]") {
  const auto device = open_host_device({});
  Int8Matmul args{.y = {nullptr, Dtype::f16}, .m = 1, .n = 2, .k = 24, .y_stride = 2};
  CHECK_THROWS_WITH(device->int8_matmul(args),
                    "int8_matmul of 24 in-features has no GPU kernel; their number must be a multiple of 16");
  args.k = (1 << 17) + 16;
  CHECK_THROWS_AS(device->int8_matmul(args), InputError);
  args.k = 32;
  args.y_stride = 1;
  CHECK_THROWS_AS(device->int8_matmul(args), InputError);
  CHECK_THROWS_AS(device->quantize_rows({.x = {nullptr, Dtype::bf16}, .m = 1, .k = 16}), InputError);
}

}  // namespace dculab::kernels::gpu
