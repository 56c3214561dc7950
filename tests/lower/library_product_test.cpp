// How vendors' libraries cut products into tiles and slabs, and what they multiply in.
#include <algorithm>
#include <vector>

#include "lower/aiter/kernels.hpp"
#include "lower/gemm/kernels.hpp"
#include "lower/lower.hpp"
#include "lower/sglang/kernels.hpp"
#include "tests/sim/machines.hpp"
#include "tests/support/catch.hpp"

namespace dculab::lower::test {
namespace {

using sim::test::a100_like;
using sim::test::mi50_like;

Op product(std::int64_t m, std::int64_t n, std::int64_t k, Dtype dtype = Dtype::f16) {
  Op op;
  op.kind = OpKind::matmul;
  op.m = m;
  op.n = n;
  op.k = k;
  op.flops = FlopCount(2.0 * static_cast<double>(m * n) * static_cast<double>(k));
  op.weight_format.dtype = op.activation_dtype = dtype;
  op.add({OperandRole::weight, storage(dtype, static_cast<double>(n * k)), {}});
  op.add({OperandRole::activation, storage(dtype, static_cast<double>(m * k)), {}});
  op.add({OperandRole::output, Bytes(static_cast<double>(2 * m * n)), {}});
  return op;
}

Device vega20() {
  Device device = mi50_like();
  device.vendor = Vendor::amd;
  device.isa = device.kernel_target = "gfx906";
  device.compute_units = 64;
  return device;
}

Device with_matrix_cores() {
  Device device = vega20();
  device.isa = "gfx90a";
  device.has_matrix_cores = true;
  return device;
}

Launch library_launch(const MatmulKernel& kernel, const Op& op, const Device& device) {
  return lower(op, {}, device, {{&kernel}, {}, {}, {}});
}

}  // namespace

TEST_CASE("activations that are rounded first are read in 8 bits, and rounding them moves bytes") {
  const auto of_role = [](const Launch& launch, OperandRole role) {
    return std::ranges::find(launch.accesses(), role, &Access::role)->unique.value();
  };
  Device hopper = a100_like();
  hopper.vendor = Vendor::nvidia;
  hopper.compute_capability = "9.0";
  Op op = product(4096, 8192, 1024, Dtype::bf16);
  op.weight_format.dtype = Dtype::fp8_e4m3;
  const Kernels kernels{{&gemm::kCublas}, {}, {}, {}};
  CHECK(activations_of(kernels, op.weight_format, ActivationMode::fp8, false, hopper) == ActivationMode::fp8);
  const Launch widened = library_launch(gemm::kCublas, op, hopper);
  op.activations = ActivationMode::fp8;
  const Launch rounded = library_launch(gemm::kCublas, op, hopper);
  const double values = 4096.0 * 1024;
  CHECK(rounded.kernels == widened.kernels + 1);
  CHECK(rounded.arithmetic.multiplied_in == Dtype::fp8_e4m3);
  CHECK(of_role(widened, OperandRole::activation) == 2 * values);
  CHECK(of_role(rounded, OperandRole::activation) == values);
  CHECK(of_role(rounded, OperandRole::output) - of_role(widened, OperandRole::output) == 3 * values);
  hopper.compute_capability = "8.0";
  CHECK(activations_of(kernels, op.weight_format, ActivationMode::fp8, false, hopper) == ActivationMode::exact);
}

TEST_CASE("a library's tiles are halved until they fill the units") {
  const auto tile = [](std::int64_t m, std::int64_t n) { return gemm::filling_tile(product(m, n, 1024), vega20()); };
  const auto is = [](MatmulTile cut, int rows, int columns) { return cut.rows == rows && cut.columns == columns; };
  CHECK(is(tile(8192, 8192), 128, 128));
  CHECK(is(tile(16, 4096), 16, 64));   // as Tensile's list for gfx906 has it: MT64x16
  CHECK(is(tile(32, 7680), 32, 128));  // MT128x32: 60 tiles fill 64 units well enough
  CHECK(is(tile(64, 448), 32, 16));
  CHECK(is(tile(3, 7), 16, 128));  // one, whatever their size
}

TEST_CASE("a workgroup fetches the slabs of k one after the other, small tiles by few waves") {
  const Launch few = library_launch(gemm::kRocblas, product(16, 4096, 4096), vega20());
  CHECK(few.slabs == 4096 * 2 / 64);
  CHECK(few.slabs_ahead == 1);
  CHECK(few.slab == Bytes((16 + 64) * 64));
  CHECK(few.slab_steps == 32);  // one value at a time
  CHECK(few.waves_per_workgroup == 1);
  CHECK(library_launch(gemm::kRocblas, product(4096, 4096, 4096), vega20()).waves_per_workgroup == 4);
  CHECK(library_launch(gemm::kRocblas, product(1, 4096, 4096), vega20()).slabs == 0);  // a matrix-vector product
  const Launch cdna = library_launch(gemm::kHipblaslt, product(16, 4096, 4096), with_matrix_cores());
  CHECK(cdna.slabs == 4096 * 2 / 128);
  CHECK(cdna.slabs_ahead == 2);
  CHECK(cdna.slab_steps == 4);  // 16 values at a time
  CHECK(library_launch(gemm::kCublas, product(16, 4096, 4096), a100_like()).slabs == 0);
}

TEST_CASE("Tensile's lists for gfx906 do not split F16 along k, nor does any integers") {
  CHECK(library_launch(gemm::kRocblas, product(16, 4096, 4096, Dtype::f32), vega20()).parts == 0);
  CHECK(library_launch(gemm::kRocblas, product(16, 4096, 4096), vega20()).parts == 1);
  Device cdna = vega20();
  cdna.isa = "gfx90a";
  CHECK(library_launch(gemm::kRocblas, product(16, 4096, 4096), cdna).parts == 0);  // as is cheapest
  CHECK(library_launch(gemm::kRocblas, product(16, 4096, 4096, Dtype::int8), cdna).parts == 1);
}

TEST_CASE("on gfx906 rocBLAS adds F16 up in F32 at the rate of F32, and multiplies bytes by two instructions") {
  const Op small = product(512, 512, 512), large = product(8192, 8192, 8192);
  CHECK(library_launch(gemm::kRocblas, small, vega20()).arithmetic.multiplied_in == Dtype::f32);
  CHECK(library_launch(gemm::kRocblas, large, vega20()).arithmetic.multiplied_in == Dtype::f16);
  CHECK(library_launch(gemm::kRocblasHalf, small, vega20()).arithmetic.multiplied_in == Dtype::f16);
  const Op bytes = product(512, 512, 512, Dtype::int8);
  const Arithmetic integers = library_launch(gemm::kRocblas, bytes, vega20()).arithmetic;
  CHECK(integers.multiplied_in == Dtype::f32);
  CHECK(integers.multiply == 2 * bytes.flops);
  Device cdna = vega20();
  cdna.isa = "gfx90a";
  CHECK(library_launch(gemm::kRocblas, small, cdna).arithmetic.multiplied_in == Dtype::f16);
  CHECK(library_launch(gemm::kRocblas, bytes, cdna).arithmetic.multiplied_in == Dtype::int8);
}

TEST_CASE("AITER's products have tiles of 64 columns at least, in slabs of 256 bytes, and are not split") {
  Device mi300 = vega20();
  mi300.isa = "gfx942";
  mi300.compute_units = 304;
  const Launch few = library_launch(aiter::kProducts, product(16, 1280, 5120, Dtype::fp8_e4m3), mi300);
  CHECK(few.tiles.columns == 1280 / 64);
  CHECK(few.slabs == 20);
  CHECK(few.parts == 1);
  const Op large = product(4096, 4096, 4096, Dtype::fp8_e4m3);
  CHECK(library_launch(aiter::kProducts, large, mi300).arithmetic.multiply == 1.5 * large.flops);  // scales of blocks
  CHECK(library_launch(gemm::kHipblaslt, large, mi300).arithmetic.multiply == large.flops);
  CHECK(library_launch(aiter::kProducts, product(64, 64, 64, Dtype::int8), mi300).arithmetic.multiply ==
        FlopCount(1 << 19));
}

TEST_CASE("SGLang's products of FP8 round activations first, and split no k") {
  Device hopper = a100_like();
  hopper.vendor = Vendor::nvidia;
  hopper.compute_capability = "9.0";
  Op op = product(1, 1536, 4096, Dtype::bf16);
  op.weight_format.dtype = Dtype::fp8_e4m3;
  CHECK_FALSE(serves(sglang::kBlockFp8, op, hopper));
  op.activations = ActivationMode::fp8;
  const Launch launch = library_launch(sglang::kBlockFp8, op, hopper);
  CHECK(launch.kernels == 2);
  CHECK(launch.grid.workgroups == 1536 / 128);
  CHECK(launch.parts == 1);
  CHECK(launch.slabs == 4096 / 128);
  CHECK(launch.arithmetic.multiplied_in == Dtype::fp8_e4m3);
  CHECK_FALSE(serves(sglang::kBlockFp8, product(1, 64, 64), hopper));
  CHECK_FALSE(serves(sglang::kBlockFp8, op, with_matrix_cores()));
  Device dcu = with_matrix_cores();
  dcu.vendor = Vendor::hygon;
  CHECK_FALSE(serves(sglang::kChannelFp8, op, dcu));
  dcu.isa = "gfx938";
  CHECK(serves(sglang::kChannelFp8, op, dcu));
  CHECK(library_launch(sglang::kChannelFp8, op, dcu).kernels == 2);
}

}  // namespace dculab::lower::test
