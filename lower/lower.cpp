#include "lower/lower.hpp"

#include <algorithm>

#include "lower/attention.hpp"
#include "lower/dculab_gpu/compiled_kernels.hpp"
#include "lower/dculab_gpu/expert_product.hpp"
#include "lower/dculab_gpu/kernel_id.hpp"
#include "lower/dculab_gpu/kernels.hpp"
#include "lower/dculab_gpu/latent_expansion.hpp"
#include "lower/dculab_gpu/streams.hpp"
#include "lower/delta_rule.hpp"
#include "lower/elementwise.hpp"
#include "lower/expert_product.hpp"
#include "lower/gemm/kernels.hpp"
#include "lower/index_scores.hpp"
#include "lower/kv/kv_lowering.hpp"
#include "lower/matmul.hpp"

namespace dculab::lower {
namespace {

[[nodiscard]] bool is_scattered(const Op& op, const Operand& operand) {
  const bool kv = operand.role == OperandRole::kv_read || operand.role == OperandRole::kv_write;
  return (kv && op.attention.is_paged) || (op.kind == OpKind::embedding && operand.role == OperandRole::weight);
}

// Each byte asked for once.
void add_accesses(const Op& op, Launch& launch) {
  for (const Operand& operand : op.operands())
    launch.access_storage[static_cast<std::size_t>(launch.num_accesses++)] = {
        .role = operand.role,
        .unique = operand.unique,
        .contiguous_run = operand.contiguous_run,
        .found_at_once = operand.contiguous_run,
        .is_scattered = is_scattered(op, operand),
        .runs_in_step = static_cast<double>(std::max(1, op.attention.num_kv_heads))};
}

// Whether a launch is that of the op, or of one expert's product, from which that of all follows.
enum class Extent : std::uint8_t { op, one_expert };

// Our own kernel for products, or that of the library that it calls. Those of experts call none.
[[nodiscard]] const MatmulKernel& called(const MatmulKernel& kernel, const Op& op, Extent extent,
                                         const Device& device) {
  if (&kernel != &dculab_gpu::kMatmul || extent == Extent::one_expert || !dculab_gpu::calls_library(op, device))
    return kernel;
  return is_nvidia(device) ? gemm::kCublas : gemm::kRocblas;
}

void lower_by_kind(const Op& op, Extent extent, const StepPlan& step, const Device& device, const Kernels& kernels,
                   Launch& launch) {
  const ChosenKernel chosen = kernel_for(kernels, op, device);
  const bool multiplies = chosen.matmul != nullptr || chosen.attention != nullptr;
  if (multiplies) launch.arithmetic.multiplied_in = multiplied_in(op);
  if (chosen.matmul != nullptr) return lower_matmul(op, called(*chosen.matmul, op, extent, device), device, launch);
  if (chosen.attention != nullptr) {
    launch.draws_alike = chosen.attention == &dculab_gpu::kAttention;
    return lower_attention(op, step, *chosen.attention, device, kernels.parameters, launch);
  }
  if (const KvOpLowering lower_kv_op = kv_op_lowering(op.kind)) return lower_kv_op(op, device, launch);
  if (op.kind == OpKind::delta_rule) return lower_delta_rule(op, device, launch);
  if (op.kind == OpKind::index_scores) return lower_index_scores(op, kernels.entries.scored_entries, device, launch);
  if (chosen.exchange != nullptr) {
    launch.transfer = chosen.exchange->transfer(op, device);
    return;
  }
  if (chosen.collective == nullptr) {
    lower_elementwise(op, device, launch);
    const ExpertKernel* sorts =
        op.kind == OpKind::route_tokens ? expert_kernel_of(kernels, op, step.batch.num_tokens(), device) : nullptr;
    if (sorts != nullptr) sort_by_expert(op, *sorts, launch);
    return;
  }
  launch.exchanges.devices = op.devices;
  chosen.collective->add_ways(op, device, launch.exchanges);
}

// What is known of our own GPU kernels: registers and LDS as compiled, which stand for those of other libraries too
// unless their tiles are known, and what they ask memory for. NVIDIA's libraries have little in common with them.
void add_what_is_known(const Op& op, Extent extent, const StepPlan& step, const Device& device, bool are_ours,
                       Launch& launch) {
  if (!are_ours && (device.kernel_target.empty() || is_nvidia(device))) return;
  if (are_ours && extent == Extent::op) {
    launch.kernels += static_cast<int>(dculab_gpu::latent_launches(op, step));
    if (op.kind == OpKind::attention_scores) add_choice_of_tokens(op, step, launch);
    if (const auto add_kernels = kv_format_lowering(op.attention.kv_dtype).add_gpu_kernels)
      add_kernels(op, step, launch);
    if (dculab_gpu::calls_library(op, device)) return;
  }
  const int heads = op.kind == OpKind::attention_decode ? static_cast<int>(launch.arithmetic.rows) : 1;
  const dculab_gpu::KernelId id = dculab_gpu::kernel_of(op, device.waves.wave_size, heads);
  const auto compiled = dculab_gpu::compiled_resources(device.kernel_target, id);
  if (compiled && !launch.knows_resources && launch.slabs == 0) launch.resources = *compiled;
  if (!are_ours || extent == Extent::one_expert) return;
  dculab_gpu::add_streams(launch.streams, op, id, dculab_gpu::units_of(op, device), launch.parts);
  if (launch.streams.count > 0) dculab_gpu::add_expansion(launch.streams, op, step);
}

// Bytes that are written and read once more. No other workgroup uses them, so they count like those of the output.
void add_unfused(const Op& op, const UnfusedWork& work, const Device& device, Launch& launch) {
  Bytes extra;
  for (const Operand& operand : op.operands())
    if (operand.role == OperandRole::activation || operand.role == OperandRole::output)
      extra += (work.activation_scale - 1) * operand.unique;
  const bool widens = device.has_matrix_cores && bits(op.weight_format.dtype) < 16;
  if (op.kind == OpKind::matmul && widens && op.m >= work.widened_from_rows)
    extra += Bytes(work.bytes_per_widened_weight * static_cast<double>(op.n) * static_cast<double>(op.k));
  if (op.kind == OpKind::attention_prefill)
    extra += Bytes(work.bytes_per_score * op.attention.score_pairs * op.attention.num_query_heads);
  const auto add = [extra](auto&& all) {
    for (auto& each : all)
      if (each.role == OperandRole::output && each.unique > Bytes()) {
        each.unique += extra;
        return;
      }
  };
  add(launch.accesses());
  add(launch.streams.all());
}

// A half of a layer ends where its output goes to the residual streams.
void add_entry_kernels(const Op& op, const EntryWork& work, Launch& launch) {
  if (op.kind == OpKind::compress_kv) launch.kernels = work.compress_kernels;
  if (op.kind == OpKind::index_scores) launch.kernels = work.index_kernels;
  if (op.kind == OpKind::mix_streams && op.input == Buffer::projected) launch.kernels += work.half_kernels;
}

void lower_to(Launch& launch, const Op& op, Extent extent, const ExpertKernel* experts, const StepPlan& step,
              const Device& device, const Kernels& kernels) {
  add_accesses(op, launch);
  experts != nullptr ? lower_experts(op, *experts, step.batch.num_tokens(), device, launch)
                     : lower_by_kind(op, extent, step, device, kernels, launch);
  if (device.kind == DeviceKind::gpu) add_what_is_known(op, extent, step, device, are_ours(kernels), launch);
  add_unfused(op, kernels.unfused, device, launch);
  add_entry_kernels(op, kernels.entries, launch);
  if (device.kind == DeviceKind::cpu) {
    launch.waits_for_loads = false;
    launch.comes_back = true;
    launch.may_run_inline = launch.arithmetic.pipe != Pipe::attention;
    return;
  }
  launch.workgroups_per_unit = std::max(1, workgroups_per_unit(device.waves, launch.resources));
  launch.waves_per_workgroup = waves_per_workgroup(device.waves, launch.resources);
}

// MLA's up-projections that a program widens when it reads a model, for products that are absorbed.
[[nodiscard]] bool is_kept_wider(const Op& op, const UnfusedWork& work) {
  return op.weight == WeightSlot::kv_b_proj && op.groups.count > 0 &&
         bits(op.weight_format.dtype) < 8 * work.bytes_per_absorbed_weight;
}

[[nodiscard]] Op as_kept(Op op, const UnfusedWork& work) {
  const double values = static_cast<double>(op.groups.count) * static_cast<double>(op.n) * static_cast<double>(op.k);
  op.weight_format = {op.activation_dtype, 0};
  op.activations = ActivationMode::exact;
  for (Operand& operand : op.operand_storage)
    if (operand.role == OperandRole::weight) operand.unique = Bytes(work.bytes_per_absorbed_weight * values);
  return op;
}

}  // namespace

Launch lower(const Op& op, const StepPlan& step, const Device& device, const Kernels& kernels) {
  if (is_kept_wider(op, kernels.unfused)) return lower(as_kept(op, kernels.unfused), step, device, kernels);
  Launch launch;
  const ExpertKernel* experts =
      op.groups.count > 0 ? expert_kernel_of(kernels, op, step.batch.num_tokens(), device) : nullptr;
  if (op.groups.count == 0 || experts != nullptr) {
    lower_to(launch, op, Extent::op, experts, step, device, kernels);
    return launch;
  }
  lower_to(launch, of_one_expert(op), Extent::one_expert, nullptr, step, device, kernels);
  extend_to_all_experts(op, launch);
  if (device.kind == DeviceKind::gpu && are_ours(kernels)) dculab_gpu::cut_expert_product(op, device, launch);
  return launch;
}

}  // namespace dculab::lower
