// Which ops our GPU kernels do on matrix cores, and what is priced of it.
#include "lower/dculab_gpu/matrix_cores.hpp"

#include <algorithm>

#include "lower/dculab_gpu/kernels.hpp"
#include "lower/lower.hpp"
#include "model/plan_step.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::lower::test {
namespace {

using dculab_gpu::Units;
using dculab_gpu::units_of;

Device device_of(const std::string& target, bool has_matrix_cores = true) {
  Device device = sim::test::mi50_like();
  device.isa = device.kernel_target = target;
  device.has_matrix_cores = has_matrix_cores;
  return device;
}

struct Formats {
  Dtype weights = Dtype::bf16, activations = Dtype::f16, cache = Dtype::f16;
};

StepPlan step_in(Phase phase, int tokens, const Formats& formats) {
  EngineOptions options;
  options.weights = {formats.weights, formats.weights == Dtype::int4 ? 128 : 0};
  options.activation_dtype = formats.activations;
  options.kv_cache_dtype = formats.cache;
  return plan_step(sim::test::llama_3_8b(), options, uniform_batch(phase, 1, tokens));
}

const Op& named(const StepPlan& plan, std::string_view name) {
  return *std::ranges::find(plan.ops, name, [](const Op& each) { return std::string_view(each.name); });
}

Launch launch_on(const StepPlan& plan, std::string_view name, const std::string& target) {
  return lower(named(plan, name), plan, device_of(target), {{&dculab_gpu::kMatmul}, {&dculab_gpu::kAttention}, {}, {}});
}

}  // namespace

TEST_CASE("gfx908 and gfx90a have kernels for matrix cores, and no other target") {
  CHECK(units_of(device_of("gfx908")) == Units::matrix);
  CHECK(units_of(device_of("gfx90a")) == Units::matrix);
  for (const char* other : {"gfx906", "gfx928", "sm_80", "sm_90", ""})
    CHECK(units_of(device_of(other)) == Units::vector);
  CHECK(units_of(device_of("gfx90a", false)) == Units::vector);
}

TEST_CASE("products of many rows and prefill attention of 16-bit values use matrix cores") {
  const auto units = [](Phase phase, const Formats& formats, std::string_view op) {
    const StepPlan plan = step_in(phase, 512, formats);
    CHECK(units_of(named(plan, op), device_of("gfx906")) == Units::vector);
    return units_of(named(plan, op), device_of("gfx90a"));
  };
  for (const Dtype activations : {Dtype::f16, Dtype::f32}) {
    CAPTURE(name(activations));
    const bool is_half = activations == Dtype::f16;
    CHECK(units(Phase::prefill, {Dtype::bf16, activations}, "down_proj") == Units::matrix);
    CHECK((units(Phase::prefill, {Dtype::f16, activations}, "down_proj") == Units::matrix) == is_half);
    CHECK((units(Phase::prefill, {Dtype::bf16, activations}, "attention_prefill") == Units::matrix) == is_half);
    for (const Dtype weights : {Dtype::f32, Dtype::fp8_e4m3, Dtype::int4})
      CHECK(units(Phase::prefill, {weights, activations}, "down_proj") == Units::vector);
    CHECK(units(Phase::decode, {Dtype::bf16, activations}, "down_proj") == Units::vector);
    CHECK(units(Phase::decode, {Dtype::bf16, activations}, "attention_decode") == Units::vector);
  }
  for (const Dtype cache : {Dtype::fp8_e4m3, Dtype::int8, Dtype::kivi4, Dtype::kivi2}) {
    CHECK(units(Phase::prefill, {Dtype::f16, Dtype::f16, cache}, "attention_prefill") == Units::matrix);
    CHECK(units(Phase::prefill, {Dtype::f16, Dtype::f32, cache}, "attention_prefill") == Units::vector);
  }
  CHECK(units(Phase::prefill, {Dtype::f16, Dtype::f16, Dtype::bf16}, "attention_prefill") == Units::vector);
}

TEST_CASE("bf16 weights are multiplied once for each part of x") {
  for (const auto& [activations, parts] : {std::pair{Dtype::f16, 2}, std::pair{Dtype::f32, 3}}) {
    const StepPlan plan = step_in(Phase::prefill, 512, {Dtype::bf16, activations});
    const Launch matrix = launch_on(plan, "down_proj", "gfx90a"), vector = launch_on(plan, "down_proj", "gfx906");
    CHECK(matrix.arithmetic.has_matrix_instructions);
    CHECK(matrix.arithmetic.multiplied_in == Dtype::bf16);
    CHECK(matrix.arithmetic.multiply == parts * named(plan, "down_proj").flops);
    CHECK_FALSE(vector.arithmetic.has_matrix_instructions);
    CHECK(vector.arithmetic.multiply == named(plan, "down_proj").flops);
    CHECK(matrix.grid.workgroups == vector.grid.workgroups);
  }
  const StepPlan plan = step_in(Phase::prefill, 512, {});
  CHECK(launch_on(plan, "attention_prefill", "gfx90a").arithmetic.has_matrix_instructions);
  CHECK_FALSE(launch_on(plan, "attention_prefill", "gfx906").arithmetic.has_matrix_instructions);
}

}  // namespace dculab::lower::test
