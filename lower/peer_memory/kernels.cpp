#include "lower/peer_memory/kernels.hpp"

#include <algorithm>
#include <array>

namespace dculab::lower::peer_memory {
namespace {

constexpr double kOneStageHops = 4;
constexpr double kTwoStageHops = 6;  // and one for each device
constexpr double kOneShotHops = 3;   // values are written, not read
constexpr Bytes kMostOfVllm = 8 * kMiB;
constexpr Bytes kMostOfIntraNodeComm = 10 * kMiB;

[[nodiscard]] bool is_reached(const Op& op, const Device& device) {
  return op.kind == OpKind::all_reduce && are_directly_linked(op, device);
}

[[nodiscard]] Exchange in_stages(const Op& op, int stages) {
  const int others = op.devices - 1;
  return {.kernels = 1,
          .default_start = {},
          .later_start = {},
          .hops = stages == 1 ? kOneStageHops : kTwoStageHops + op.devices,
          .later_hop = {},
          .sent = (stages == 1 ? others : 2.0 * others / op.devices) * result_of(op),
          .copied = {}};
}

[[nodiscard]] bool serves_vllm(const Op& op, const Device& device) {
  constexpr std::array kWorlds{2, 4, 6, 8};
  const bool has_kernel = is_nvidia(device) || device.isa == "gfx942" || device.isa == "gfx950";
  return has_kernel && is_reached(op, device) && result_of(op) < kMostOfVllm &&
         std::ranges::find(kWorlds, op.devices) != kWorlds.end();
}

void add_vllm(const Op& op, const Device& /*device*/, Exchanges& ways) {
  const Bytes bytes = result_of(op);
  const bool one = op.devices == 2 || (op.devices <= 4 && bytes < 512 * kKiB) || bytes < 256 * kKiB;
  ways.add(in_stages(op, one ? 1 : 2));
}

[[nodiscard]] bool serves_intra_node_comm(const Op& op, const Device& device) {
  return is_nvidia(device) && is_reached(op, device) && result_of(op) <= kMostOfIntraNodeComm;
}

void add_intra_node_comm(const Op& op, const Device& /*device*/, Exchanges& ways) {
  ways.add(in_stages(op, result_of(op) <= 256 * kKiB ? 1 : 2));
}

// From where it takes over from the custom kernel, and up to where.
struct Sizes {
  int devices;
  Bytes least, most;
};
constexpr std::array<Sizes, 4> kSymmetricSizes{
    {{2, 8 * kMiB, 64 * kMiB}, {4, 8 * kMiB, 32 * kMiB}, {6, 512 * kKiB, 64 * kMiB}, {8, 256 * kKiB, 64 * kMiB}}};

[[nodiscard]] bool serves_symmetric(const Op& op, const Device& device) {
  if (!is_hopper(device) || !is_reached(op, device)) return false;
  const auto sizes = std::ranges::find(kSymmetricSizes, op.devices, &Sizes::devices);
  return sizes != kSymmetricSizes.end() && result_of(op) >= sizes->least && result_of(op) <= sizes->most;
}

// Two devices do without the switch.
void add_symmetric(const Op& op, const Device& /*device*/, Exchanges& ways) {
  const Bytes bytes = result_of(op);
  ways.add({.kernels = 3,
            .default_start = {},
            .later_start = {},
            .hops = kTwoStageHops,
            .later_hop = {},
            .sent = (op.devices == 2 ? 1.0 : 1 + 1.0 / op.devices) * bytes,
            .copied = 2 * bytes});
}

[[nodiscard]] Bytes most_of_one_shot(int devices) {
  if (devices == 2) return 4 * kMiB;
  return devices <= 4 ? kMiB : 512 * kKiB;
}

[[nodiscard]] bool serves_one_shot(const Op& op, const Device& device) {
  return is_nvidia(device) && is_reached(op, device) && result_of(op) <= most_of_one_shot(op.devices);
}

void add_one_shot(const Op& op, const Device& /*device*/, Exchanges& ways) {
  Exchange way = in_stages(op, 1);
  way.hops = kOneShotHops;
  ways.add(way);
}

}  // namespace

constexpr CollectiveKernel kVllmCustomAllReduce{
    .name = "vllm_custom_all_reduce",
    .source = "vLLM 0.23, csrc/custom_all_reduce.cuh; device_communicators/custom_all_reduce.py",
    .serves = serves_vllm,
    .add_ways = add_vllm};

constexpr CollectiveKernel kTorchIntraNodeComm{
    .name = "torch_intra_node_comm",
    .source = "PyTorch, torch/csrc/distributed/c10d/symm_mem/intra_node_comm.cu",
    .serves = serves_intra_node_comm,
    .add_ways = add_intra_node_comm};

constexpr CollectiveKernel kTorchSymmetricMemory{
    .name = "torch_symmetric_memory",
    .source = "vLLM 0.23, device_communicators/{symm_mem,all_reduce_utils}.py",
    .serves = serves_symmetric,
    .add_ways = add_symmetric};

constexpr CollectiveKernel kTensorrtLlmOneShot{
    .name = "tensorrt_llm_one_shot",
    .source = "NVIDIA/TensorRT-LLM@005b299 cpp/tensorrt_llm/common/customAllReduceUtils.h",
    .serves = serves_one_shot,
    .add_ways = add_one_shot};

}  // namespace dculab::lower::peer_memory
