#include "lower/nccl/kernels.hpp"

#include <array>

namespace dculab::lower::nccl {
namespace {

constexpr std::array<Protocol, 3> kProtocols{{
    {Seconds(), Seconds(), 0.25},               // LL
    {Seconds(6.4e-6), Seconds(1.43e-6), 0.92},  // LL128
    {Seconds(4.8e-6), Seconds(2.93e-6), 1.0},   // Simple
}};

[[nodiscard]] bool serves_nvidia(const Op& /*op*/, const Device& device) { return is_nvidia(device); }
[[nodiscard]] bool serves_others(const Op& /*op*/, const Device& device) { return !is_nvidia(device); }

// The bytes that every device has in the end.
[[nodiscard]] Bytes result_of(const Op& op) {
  for (const Operand& operand : op.operands())
    if (operand.role == OperandRole::output) return operand.unique;
  return {};
}

[[nodiscard]] Exchange round_a_ring(const Op& op, const Device& /*device*/) {
  const int passes = op.kind == OpKind::all_reduce ? 2 : 1, others = op.devices - 1;
  return {.devices = op.devices,
          .hops = static_cast<double>(passes * others),
          .sent = passes * static_cast<double>(others) / op.devices * result_of(op),
          .protocols = kProtocols};
}

[[nodiscard]] Exchange to_all_at_once(const Op& op, const Device& device) {
  Exchange exchange = round_a_ring(op, device);
  const int others = op.devices - 1;
  const bool share_a_server = !device.peers || others <= *device.peers;
  if (share_a_server && others <= device.direct_peers.value_or(0)) exchange.hops /= others;
  return exchange;
}

}  // namespace

constexpr CollectiveKernel kNccl{.name = "nccl",
                                 .source = "NVIDIA/nccl@01afd20, src/graph/tuning.cc",
                                 .serves = serves_nvidia,
                                 .exchange = round_a_ring};

constexpr CollectiveKernel kRccl{.name = "rccl",
                                 .source = "ROCm/rccl@9e22c79, src/graph/tuning.cc, tools/msccl-algorithms",
                                 .serves = serves_others,
                                 .exchange = to_all_at_once};

}  // namespace dculab::lower::nccl
