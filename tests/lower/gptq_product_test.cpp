// GPTQ's products of vLLM on AMD's and Hygon's devices: slices of k, registers that do not suffice, widened weights.
#include "lower/lower.hpp"
#include "lower/weight_only/kernels.hpp"
#include "tests/sim/machines.hpp"
#include "tests/support/catch.hpp"

namespace dculab::lower::test {
namespace {

constexpr std::int64_t kColumns = 6144, kDepth = 4096;

Op gptq_product(std::int64_t m, Dtype dtype = Dtype::int4) {
  Op op;
  op.kind = OpKind::matmul;
  op.m = m;
  op.n = kColumns;
  op.k = kDepth;
  op.flops = FlopCount(2.0 * static_cast<double>(m * kColumns * kDepth));
  op.weight_format = {dtype, 128};
  op.activation_dtype = Dtype::f16;
  op.add({OperandRole::weight, storage(dtype, kColumns * kDepth), {}});
  op.add({OperandRole::activation, storage(Dtype::f16, static_cast<double>(m * kDepth)), {}});
  op.add({OperandRole::output, storage(Dtype::f16, static_cast<double>(m * kColumns)), {}});
  return op;
}

Device gfx906_device() {
  Device device = sim::test::mi50_like();
  device.vendor = Vendor::hygon;
  device.isa = "gfx906";
  return device;
}

Launch gptq_launch(const MatmulKernel& kernel, std::int64_t m, const Device& device = gfx906_device()) {
  return lower(gptq_product(m), {}, device, {{&kernel}, {}, {}, {}});
}

}  // namespace

TEST_CASE("GPTQ's workgroups take 8 rows, 512 columns and 128 values of k, and add their sums to y") {
  const Launch launch = gptq_launch(weight_only::kVllmGptq, 22);
  CHECK(launch.grid.workgroups == 3 * 12);
  CHECK(launch.parts == 32);
  CHECK(launch.adds_in_place);
  CHECK(launch.kernels == 1);
  CHECK(launch.resources.threads == 128);
  CHECK(launch.workgroups_per_unit == 6);  // 3 waves of 73 registers on a SIMD
  CHECK(launch.accesses()[0].requests == 3);
  CHECK(launch.accesses()[1].requests == 12);
  CHECK(launch.spills.moved == Bytes());
}

TEST_CASE("GPTQ's kernel has no matrix instructions: its work grows with the rows and with their blocks") {
  const double weights = static_cast<double>(kColumns * kDepth);
  for (const bool has_matrix_cores : {false, true}) {
    Device device = gfx906_device();
    device.has_matrix_cores = has_matrix_cores;
    const Arithmetic work = gptq_launch(weight_only::kVllmGptq, 22, device).arithmetic;
    CHECK(work.multiply == FlopCount());
    CHECK(work.packed.value() == Approx(1.1 * 22 * weights));
    CHECK(work.stored_values * work.shaping_per_value == Approx(1.9 * 3 * weights));
    CHECK(work.stored == work.multiplied_in);  // nothing else converts them
  }
}

TEST_CASE("registers for 1024 threads are too few for 8 rows on gfx906, not for fewer, nor where a SIMD has 512") {
  const auto spills = [](std::int64_t m, const Device& device = gfx906_device()) {
    return gptq_launch(weight_only::kVllmGptqSpilling, m, device).spills;
  };
  CHECK(spills(6).moved == Bytes());
  const double blocks = 12 * 32, visits = 300, threads = 128;  // of 8 rows
  CHECK(spills(8).moved / Bytes(blocks * visits * threads * 4) == Approx(1));
  CHECK(spills(22).moved / spills(8).moved == Approx(2));
  CHECK(gptq_launch(weight_only::kVllmGptqSpilling, 8).resources.vgprs == 64);
  Device large = gfx906_device();
  large.waves.vgprs_per_lane = 512;
  CHECK(spills(8, large).moved == Bytes());
}

TEST_CASE("more rows than GPTQ's kernel takes are multiplied by a library, after the weights are widened") {
  const auto served = [](std::int64_t m, Dtype dtype) {
    return serves(weight_only::kVllmGptq, gptq_product(m, dtype), gfx906_device());
  };
  CHECK(served(50, Dtype::int4));
  CHECK_FALSE(served(51, Dtype::int4));
  CHECK(served(24, Dtype::int8));
  CHECK_FALSE(served(25, Dtype::int8));
  CHECK(why_not(weight_only::kVllmGptq, gptq_product(25, Dtype::int8), gfx906_device()) == "takes at most 24 rows");
  const Launch launch = gptq_launch(weight_only::kVllmGptqWidened, 64);
  const Op op = gptq_product(64);
  const Bytes narrow = op.operands()[0].unique, wide = storage(Dtype::f16, kColumns * kDepth);
  CHECK(launch.kernels == 2);
  CHECK(launch.accesses()[0].unique == wide);
  CHECK(launch.accesses()[2].unique == op.operands()[2].unique + narrow + wide);
  CHECK(launch.arithmetic.multiply == op.flops);
  CHECK(launch.arithmetic.stored_values == static_cast<double>(kColumns * kDepth));  // once, whatever the tiles
}

}  // namespace dculab::lower::test
