// Do the GPU's products with f16, bf16 and f32 weights agree with the reference, and load what they should?
#include <cmath>

#include "core/error.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "lower/dculab_gpu/geometry.hpp"
#include "tests/kernels/gpu/device_under_test.hpp"
#include "tests/kernels/gpu/matmul_cases.hpp"
#include "tests/kernels/gpu/weight_loads.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels::gpu {
namespace {

enum class PlannedWorkspace : std::uint8_t { none, as_planned };

std::size_t product(int a, int b) { return static_cast<std::size_t>(a) * static_cast<std::size_t>(b); }

// x and w of a product, its result as the reference has it, and as a device has it.
class PlainProduct {
 public:
  PlainProduct(MatmulShape shape, MatmulFormats formats) : shape_(shape), formats_(formats) {
    TensorSource source(static_cast<unsigned>(shape.m + shape.n + shape.k));
    x_ = source.stored(product(shape.m, shape.k), formats.x);
    w_ = source.stored(product(shape.n, shape.k), formats.w);
    expected_.resize(product(shape.m, shape.n));
    const auto wide_x = widen(x_, formats.x);
    reference::matmul({.x = wide_x.data(),
                       .weights = {{{w_.data(), formats.w, shape.n}}},
                       .y = expected_.data(),
                       .m = shape.m,
                       .k = shape.k});
  }

  // [m, y_stride], bytes that nothing was written to are 0xFF.
  [[nodiscard]] std::vector<std::byte> run(Device& device, int y_stride, PlannedWorkspace workspace) const {
    const DeviceTensor x(device, x_), w(device, w_, OperandRole::weight);
    const DeviceTensor y(device, bytes_of(formats_.y, product(shape_.m, y_stride)));
    const DeviceTensor partials(device, matmul_workspace(shape_.m, shape_.n, shape_.k) * sizeof(float));
    device.matmul({.x = {x.as(), formats_.x},
                   .w = {w.as(), formats_.w},
                   .y = {y.as(), formats_.y},
                   .m = shape_.m,
                   .n = shape_.n,
                   .k = shape_.k,
                   .y_stride = y_stride,
                   .workspace = workspace == PlannedWorkspace::none ? nullptr : partials.as<float>()});
    return y.read<std::byte>();
  }

  // k products of size 1 summed in f32, then one rounding to the format of y.
  void require_agreement(const std::vector<std::byte>& y, int y_stride) const {
    const auto got = widen(y, formats_.y);
    const double of_sum = sum_tolerance(shape_.k, 1.0);
    for (int row = 0; row < shape_.m; ++row) {
      for (int column = 0; column < shape_.n; ++column) {
        const double value = got[product(row, y_stride) + static_cast<std::size_t>(column)];
        const double expected = expected_[product(row, shape_.n) + static_cast<std::size_t>(column)];
        INFO("row " << row << ", column " << column);
        REQUIRE(std::abs(value - expected) <= of_sum + rounding(formats_.y) * (std::abs(expected) + of_sum));
      }
    }
  }

  // Values of y beyond the n columns of each row were left alone.
  void require_untouched(const std::vector<std::byte>& y, int y_stride) const {
    const std::size_t size = bytes_of(formats_.y, 1);
    for (int row = 0; row < shape_.m; ++row) {
      const auto begin = y.begin() + static_cast<std::ptrdiff_t>((product(row, y_stride) + shape_.n) * size);
      const auto end = y.begin() + static_cast<std::ptrdiff_t>(product(row + 1, y_stride) * size);
      REQUIRE(std::all_of(begin, end, [](std::byte each) { return each == std::byte{0xFF}; }));
    }
  }

  void check(int y_stride, PlannedWorkspace workspace) const {
    for_each_device([&](Device& device) {
      const auto y = run(device, y_stride, workspace);
      require_agreement(y, y_stride);
      require_untouched(y, y_stride);
    });
  }

 private:
  MatmulShape shape_;
  MatmulFormats formats_;
  std::vector<std::byte> x_, w_;
  std::vector<float> expected_;
};

std::vector<MatmulFormats> all_formats() {
  std::vector<MatmulFormats> all;
  for (const Dtype x : {Dtype::f16, Dtype::f32})
    for (const Dtype w : {Dtype::f16, Dtype::bf16, Dtype::f32}) all.push_back({x, w, x});
  return all;
}

}  // namespace

TEST_CASE("GPU matmul of a few rows agrees with the reference in all formats", "[gpu][matmul]") {
  const int m = GENERATE(1, 2, 3, 4, 7, 8);
  const auto shape = GENERATE(values<MatmulShape>({{0, 1, 8}, {0, 63, 72}, {0, 37, 520}}));
  for (const MatmulFormats formats : all_formats()) {
    CAPTURE(m, shape.n, shape.k, name(formats.x), name(formats.w));
    PlainProduct({m, shape.n, shape.k}, formats).check(shape.n, PlannedWorkspace::none);
  }
}

TEST_CASE("GPU matmul of a few rows agrees with the reference where x takes several slabs", "[gpu][matmul]") {
  const auto shape =
      GENERATE(values<MatmulShape>({{1, 5, 8 * 1024 + 8}, {2, 9, 12 * 1024}, {5, 17, 3080}, {8, 3, 2056}}));
  const auto formats = GENERATE(values<MatmulFormats>({{Dtype::f16, Dtype::f16, Dtype::f16},
                                                       {Dtype::f32, Dtype::bf16, Dtype::f32},
                                                       {Dtype::f16, Dtype::f32, Dtype::f32}}));
  CAPTURE(shape.m, shape.n, shape.k, name(formats.x), name(formats.w));
  PlainProduct(shape, formats).check(shape.n, PlannedWorkspace::none);
}

TEST_CASE("GPU matmul of many rows agrees with the reference in all formats", "[gpu][matmul]") {
  const auto shape =
      GENERATE(values<MatmulShape>({{9, 1, 8}, {9, 129, 72}, {33, 63, 136}, {65, 129, 40}, {130, 5, 72}}));
  for (const MatmulFormats formats : all_formats()) {
    CAPTURE(shape.m, shape.n, shape.k, name(formats.x), name(formats.w));
    PlainProduct(shape, formats).check(shape.n, PlannedWorkspace::none);
  }
}

TEST_CASE("GPU matmul writes f32 from halves, side by side with other matrices", "[gpu][matmul]") {
  const int m = GENERATE(1, 6, 40);
  const int y_stride = GENERATE(67, 72, 131);
  const Dtype y = GENERATE(Dtype::f16, Dtype::f32);
  CAPTURE(m, y_stride, name(y));
  PlainProduct({m, 67, 72}, {Dtype::f16, Dtype::f16, y}).check(y_stride, PlannedWorkspace::none);
}

TEST_CASE("GPU matmul splits k where tiles are few, and repeats bit for bit", "[gpu][matmul]") {
  const auto shape = GENERATE(values<MatmulShape>({{9, 129, 520}, {33, 63, 1096}, {130, 20, 1096}}));
  const auto formats = GENERATE(values<MatmulFormats>({{Dtype::f16, Dtype::f16, Dtype::f16},
                                                       {Dtype::f16, Dtype::bf16, Dtype::f32},
                                                       {Dtype::f32, Dtype::f32, Dtype::f32}}));
  CAPTURE(shape.m, shape.n, shape.k, name(formats.x), name(formats.w));
  REQUIRE(plan_matmul(shape.m, shape.n, shape.k).split.parts > 1);
  const PlainProduct problem(shape, formats);
  const int y_stride = shape.n + 3;
  for_each_device([&](Device& device) {
    const auto y = problem.run(device, y_stride, PlannedWorkspace::as_planned);
    problem.require_agreement(y, y_stride);
    problem.require_untouched(y, y_stride);
    CHECK(y == problem.run(device, y_stride, PlannedWorkspace::as_planned));
  });
}

TEST_CASE("GPU matmul without a workspace does not split k", "[gpu][matmul]") {
  PlainProduct({33, 63, 1096}, {Dtype::f16, Dtype::f16, Dtype::f32}).check(63, PlannedWorkspace::none);
}

TEST_CASE("GPU matmul keeps the range of bf16 weights", "[gpu][matmul]") {
  for (const int m : {1, 9}) {
    const std::vector<float> x(product(m, 8), 0x1p-60F);
    const std::vector<std::uint16_t> w(8, 0x7100);  // 2^99: far beyond halves
    for_each_device([&](Device& device) {
      const DeviceTensor device_x(device, x), device_w(device, w), y(device, product(m, 4));
      device.matmul({.x = {device_x.as(), Dtype::f32},
                     .w = {device_w.as(), Dtype::bf16},
                     .y = {y.as(), Dtype::f32},
                     .m = m,
                     .n = 1,
                     .k = 8,
                     .y_stride = 1});
      CHECK(y.read<float>() == std::vector<float>(static_cast<std::size_t>(m), 0x1p42F));
    });
  }
}

TEST_CASE("GPU matmul of a few rows loads every weight byte once, 16 bytes per lane", "[gpu][matmul][trace]") {
  const int wave_size = GENERATE(64, 32);
  const int m = GENERATE(1, 3, 8);
  const auto formats = GENERATE(values<MatmulFormats>({{Dtype::f16, Dtype::f16, Dtype::f16},
                                                       {Dtype::f16, Dtype::bf16, Dtype::f16},
                                                       {Dtype::f32, Dtype::f32, Dtype::f32}}));
  CAPTURE(wave_size, m, name(formats.w));
  host::AddressRecorder recorder;
  const auto device = open_host_device({.wave_size = wave_size, .recorder = &recorder});
  (void)PlainProduct({m, 45, 1032}, formats).run(*device, 45, PlannedWorkspace::none);
  const WeightLoads loads = weight_loads(recorder.take("gemv_kernel"));
  CHECK(loads.is_sixteen_per_lane);
  CHECK(loads.all_are(1));
}

TEST_CASE("GPU matmul of many rows loads the weights once for each row of tiles", "[gpu][matmul][trace]") {
  const auto shape = GENERATE(values<MatmulShape>({{9, 129, 72}, {130, 70, 40}}));
  host::AddressRecorder recorder;
  const auto device = open_host_device({.wave_size = 64, .recorder = &recorder});
  (void)PlainProduct(shape, {Dtype::f16, Dtype::f16, Dtype::f16}).run(*device, shape.n, PlannedWorkspace::none);
  const WeightLoads loads = weight_loads(recorder.take("gemm_kernel"));
  CHECK(loads.is_sixteen_per_lane);
  CHECK(loads.all_are(plan_matmul(shape.m, shape.n, shape.k).row_tiles));
}

TEST_CASE("GPU matmul plans: GEMV, tiles, split k", "[gpu][matmul]") {
  CHECK(plan_matmul(8, 4096, 4096).kernel == MatmulKernel::gemv);
  CHECK(plan_matmul(3, 4096, 4096).rows == 4);
  CHECK(matmul_workspace(8, 4096, 4096) == 0);

  const MatmulPlan few = plan_matmul(16, 4096, 4096);
  CHECK(few.rows == kGemmSmallRows);
  CHECK(few.column_tiles == 32);
  CHECK(few.split.parts == 4);
  CHECK(few.split.k_per_part == 1024);
  CHECK(matmul_workspace(16, 4096, 4096) == std::size_t{4} * 16 * 4096);

  const MatmulPlan many = plan_matmul(2048, 4096, 4096);
  CHECK(many.rows == kGemmLargeRows);
  CHECK(many.row_tiles == 16);
  CHECK(many.split.parts == 1);
  // Parts would have to be 4 * 600 values: the sums of two parts would be more bytes than the weights.
  CHECK(plan_matmul(600, 128, 2048).split.parts == 1);
}

TEST_CASE("GPU matmul refuses what it has no kernel for", "[gpu][matmul]") {
  const auto device = open_host_device({});
  std::vector<float> memory(1024);
  const Matmul good{.x = {memory.data(), Dtype::f16},
                    .w = {memory.data(), Dtype::f16},
                    .y = {memory.data() + 512, Dtype::f16},
                    .m = 1,
                    .n = 2,
                    .k = 16,
                    .y_stride = 2};
  CHECK_NOTHROW(device->matmul(good));
  Matmul bad = good;
  bad.k = 12;
  CHECK_THROWS_WITH(device->matmul(bad),
                    "matmul of 12 in-features has no GPU kernel; their number must be a multiple of 8");
  bad = good;
  bad.x.dtype = Dtype::bf16;
  CHECK_THROWS_WITH(device->matmul(bad), "the input of matmul in bf16 has no GPU kernel; there is one for f32, f16");
  bad = good;
  bad.w.dtype = Dtype::int8;
  CHECK_THROWS_AS(device->matmul(bad), InputError);
  bad = good;
  bad.y_stride = 1;
  CHECK_THROWS_WITH(device->matmul(bad), "matmul of 2 out-features does not fit result rows of 1");
}

}  // namespace dculab::kernels::gpu
