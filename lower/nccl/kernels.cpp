#include "lower/nccl/kernels.hpp"

#include <array>

namespace dculab::lower::nccl {
namespace {

struct Protocol {
  Seconds later_start;
  Seconds later_hop;
  double link_share = 1;
};

constexpr std::array<Protocol, 3> kNcclProtocols{{
    {Seconds(), Seconds(), 0.05},               // LL: a flag beside each value
    {Seconds(0.85e-6), Seconds(0.1e-6), 0.51},  // LL128: a flag in each 128 bytes
    {Seconds(14.2e-6), Seconds(), 1.0},         // Simple
}};
constexpr std::array<Protocol, 2> kRcclProtocols{{
    {Seconds(), Seconds(), 0.1},
    {Seconds(16e-6), Seconds(), 1.0},
}};
constexpr Seconds kNcclStart(6.6e-6), kRcclStart(12e-6);  // of a ring's LL, in their tuning.cc
constexpr Seconds kNvlsStart(70e-6);
constexpr double kNvlsShare = 0.93;
constexpr Bytes kMostToAllAtOnce = 512 * kKiB;

[[nodiscard]] bool serves_nvidia(const Op& /*op*/, const Device& device) { return is_nvidia(device); }
[[nodiscard]] bool serves_others(const Op& /*op*/, const Device& device) { return !is_nvidia(device); }

[[nodiscard]] int passes_of(const Op& op) { return op.kind == OpKind::all_reduce ? 2 : 1; }

void add_rings(const Op& op, std::span<const Protocol> protocols, Seconds start, Exchanges& ways) {
  const int others = op.devices - 1;
  for (const Protocol& protocol : protocols)
    ways.add({.default_start = start,
              .later_start = protocol.later_start,
              .hops = static_cast<double>(passes_of(op) * others),
              .later_hop = protocol.later_hop,
              .sent = passes_of(op) * static_cast<double>(others) / op.devices * result_of(op),
              .link_share = protocol.link_share,
              .copied = {}});
}

void add_nccl(const Op& op, const Device& device, Exchanges& ways) {
  add_rings(op, kNcclProtocols, kNcclStart, ways);
  if (op.kind == OpKind::all_reduce && is_hopper(device) && op.devices > 2 && are_directly_linked(op, device))
    ways.add({.default_start = kNcclStart,
              .later_start = kNvlsStart,
              .later_hop = {},
              .sent = (1 + 1.0 / op.devices) * result_of(op),
              .link_share = kNvlsShare,
              .copied = {}});
}

void add_rccl(const Op& op, const Device& device, Exchanges& ways) {
  add_rings(op, kRcclProtocols, kRcclStart, ways);
  if (device.isa != "gfx942" || !are_directly_linked(op, device) || result_of(op) > kMostToAllAtOnce) return;
  Exchange at_once = ways.ways().front();
  at_once.hops = passes_of(op);
  ways.add(at_once);
}

}  // namespace

constexpr CollectiveKernel kNccl{.name = "nccl",
                                 .source = "NVIDIA/nccl@5067397 src/graph/tuning.cc; fitted to nccl-tests",
                                 .serves = serves_nvidia,
                                 .add_ways = add_nccl};

constexpr CollectiveKernel kRccl{.name = "rccl",
                                 .source = "ROCm/rccl@0cbce2a src/graph/tuning.cc; fitted to BW1000's table",
                                 .serves = serves_others,
                                 .add_ways = add_rccl};

}  // namespace dculab::lower::nccl
