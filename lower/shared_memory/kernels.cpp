#include "lower/shared_memory/kernels.hpp"

#include "lower/shared_memory/geometry.hpp"

namespace dculab::lower::shared_memory {
namespace {

constexpr double kCopiesOfRow = 2;  // where it is sent from, and where it arrives

[[nodiscard]] bool serves_cpus(const Op& /*op*/, const Device& device) { return device.kind == DeviceKind::cpu; }

// Of a gather each rank hands over its part, of an all-reduce all.
void add_ways(const Op& op, const Device& /*device*/, Exchanges& ways) {
  const bool sums = op.kind == OpKind::all_reduce;
  const Bytes result = result_of(op);
  ways.add({.kernels = 0,
            .default_start = {},
            .later_start = {},
            .hops = meetings(sums ? result : result / op.devices),
            .later_hop = {},
            .sent = (sums ? op.devices : 1) * result,
            .copied = {}});
}

// Beside the rows, the choice of all tokens is gathered before a dispatch.
[[nodiscard]] TokenTransfer transfer(const Op& op, const Device& /*device*/) {
  const bool dispatches = op.kind == OpKind::dispatch_tokens;
  const double rows = dispatches ? op.exchange.device_tokens : op.exchange.expert_rows;
  const Bytes bytes = rows * storage(op.activation_dtype, static_cast<double>(op.n));
  return {.devices = op.devices,
          .kernels = 0,
          .passes = meetings(bytes) + (dispatches ? 1 : 0),
          .within = kCopiesOfRow * bytes,
          .links = LinkUse::in_turn};
}

}  // namespace

constexpr CollectiveKernel kSharedMemory{
    .name = "shared_memory", .source = "engine/exchange", .serves = serves_cpus, .add_ways = add_ways};

constexpr ExchangeKernel kTokens{
    .name = "shared_memory", .source = "engine/exchange", .serves = serves_cpus, .transfer = transfer};

}  // namespace dculab::lower::shared_memory
