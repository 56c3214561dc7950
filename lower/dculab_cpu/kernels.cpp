#include "lower/dculab_cpu/kernels.hpp"

#include <algorithm>
#include <limits>

#include "lower/dculab_cpu/geometry.hpp"
#include "lower/kv/kv_lowering.hpp"

namespace dculab::lower::dculab_cpu {
namespace {

[[nodiscard]] int no_gemv(const Device& /*device*/) { return std::numeric_limits<int>::max(); }

[[nodiscard]] bool runs_on_cpus(const Device& device) { return device.kind == DeviceKind::cpu; }

[[nodiscard]] MatmulTile all_of_it(const Op& /*op*/, const Device& /*device*/) {
  constexpr int kAll = std::numeric_limits<int>::max();
  return {kAll, kAll};
}

[[nodiscard]] AttentionTile tile(const Op& op, const StepPlan& /*step*/, const Device& /*device*/,
                                 const ParameterChoices& /*chosen*/) {
  const AttentionWork& work = op.attention;
  if (op.kind == OpKind::attention_scores) return heavy_hitters_tile(work);
  return {.query_tokens = std::max(1, kQueryRows / group_size(work)),
          .query_heads = group_size(work),
          .partition_tokens = kPartitionTokens,
          .gathers_paths = true};
}

// kernels/cpu: matmul.cpp, quantized_matmul.cpp; int2 and int3 are packed as int4.
constexpr ProductFormat kFormats[] = {{.weights = Dtype::f32},
                                      {.weights = Dtype::f16},
                                      {.weights = Dtype::bf16},
                                      {.weights = Dtype::bf16, .activations = ActivationMode::bf16},
                                      {.weights = Dtype::fp8_e4m3},
                                      {.weights = Dtype::int8},
                                      {.weights = Dtype::int8, .activations = ActivationMode::int8},
                                      {.weights = Dtype::int4},
                                      {.weights = Dtype::int4, .activations = ActivationMode::int8},
                                      {.weights = Dtype::int3},
                                      {.weights = Dtype::int3, .activations = ActivationMode::int8},
                                      {.weights = Dtype::int2},
                                      {.weights = Dtype::int2, .activations = ActivationMode::int8}};

}  // namespace

constexpr MatmulKernel kMatmul{.name = "dculab_cpu",
                               .source = "kernels/cpu",
                               .gemv_rows = no_gemv,
                               .runs_on = runs_on_cpus,
                               .formats = kFormats,
                               .tile = all_of_it};

constexpr AttentionKernel kAttention{
    .name = "dculab_cpu", .source = "kernels/cpu", .limits = {}, .runs_on = runs_on_cpus, .tile = tile};

}  // namespace dculab::lower::dculab_cpu
