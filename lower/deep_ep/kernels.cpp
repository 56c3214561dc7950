#include "lower/deep_ep/kernels.hpp"

#include <algorithm>

namespace dculab::lower::deep_ep {
namespace {

constexpr int kMostLowLatencyTokens = 256;  // DeepEP advises fewer than 256; 256 itself is taken too
constexpr double kScaledValues = 128;
constexpr Bytes kScale(4), kHeader(16);
constexpr double kUnits = 20;

[[nodiscard]] Bytes row_of(const Op& op) {
  const auto values = static_cast<double>(op.n);
  const bool has_scales = bits(op.activation_dtype) == 8;
  return storage(op.activation_dtype, values) + (has_scales ? values / kScaledValues * kScale : Bytes());
}

[[nodiscard]] bool serves_all(const Op& /*op*/, const Device& /*device*/) { return true; }
[[nodiscard]] bool serves_few(const Op& op, const Device& /*device*/) { return op.m <= kMostLowLatencyTokens; }

[[nodiscard]] TokenTransfer high_throughput(const Op& op, const Device& device) {
  const Bytes row = row_of(op);
  return {.devices = op.devices,
          .kernels = 2,
          .passes = 2,
          .within = op.exchange.device_tokens * row,
          .between = op.exchange.node_copies * row,
          .links = LinkUse::together,
          .units = std::min<double>(kUnits, device.compute_units)};
}

[[nodiscard]] TokenTransfer low_latency(const Op& op, const Device& /*device*/) {
  const bool has_header = op.kind == OpKind::dispatch_tokens;
  const Bytes rows = op.exchange.expert_rows * (row_of(op) + (has_header ? kHeader : Bytes()));
  const double inside = std::min(1.0, static_cast<double>(op.exchange.devices_per_node) / op.devices);
  return {.devices = op.devices,
          .kernels = 2,
          .passes = 1,
          .within = inside * rows,
          .between = (1 - inside) * rows,
          .links = LinkUse::in_turn,
          .units = 0};
}

}  // namespace

constexpr ExchangeKernel kHighThroughput{.name = "deepep_high_throughput",
                                         .source = "deepseek-ai/DeepEP@0297fc8 docs/legacy.md",
                                         .serves = serves_all,
                                         .transfer = high_throughput};

constexpr ExchangeKernel kLowLatency{.name = "deepep_low_latency",
                                     .source = "deepseek-ai/DeepEP@0297fc8 docs/legacy.md",
                                     .serves = serves_few,
                                     .transfer = low_latency};

}  // namespace dculab::lower::deep_ep
