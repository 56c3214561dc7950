// Bytes that DeepEP's kernels move, as its own tests count them.
#include "lower/deep_ep/kernels.hpp"
#include "lower/lower.hpp"
#include "tests/sim/machines.hpp"
#include "tests/support/catch.hpp"

namespace dculab::lower::test {
namespace {

[[nodiscard]] Op dispatch(int devices, std::int64_t tokens, Dtype dtype) {
  Op op;
  op.kind = OpKind::dispatch_tokens;
  op.devices = devices;
  op.m = tokens;
  op.n = 7168;
  op.activation_dtype = dtype;
  const auto own = static_cast<double>(tokens);
  op.exchange = {.devices_per_node = 8, .expert_rows = 8 * own, .device_tokens = 6 * own, .node_copies = 2 * own};
  return op;
}

[[nodiscard]] TokenTransfer transfer_of(const Op& op) { return lower(op, {}, sim::test::hopper_like()).transfer; }

}  // namespace

TEST_CASE("a token crosses the network once for each node and NVLink once for each device", "[experts]") {
  const TokenTransfer fp8 = transfer_of(dispatch(32, 4096, Dtype::fp8_e4m3));
  const double row = 7168 + 7168 / 128 * 4;
  CHECK(fp8.between.value() == Approx(2 * 4096 * row));
  CHECK(fp8.within.value() == Approx(6 * 4096 * row));
  CHECK(fp8.links == LinkUse::together);
  CHECK(fp8.units == 20);
  const TokenTransfer bf16 = transfer_of(dispatch(32, 4096, Dtype::bf16));
  CHECK(bf16.between.value() == Approx(2 * 4096 * 7168 * 2.0));
}

TEST_CASE("few tokens go straight to each expert's device", "[experts]") {
  const TokenTransfer fp8 = transfer_of(dispatch(32, 128, Dtype::fp8_e4m3));
  const double rows = 8 * 128 * (7168 + 7168 / 128 * 4 + 16.0);
  CHECK(fp8.between.value() == Approx(0.75 * rows));
  CHECK(fp8.within.value() == Approx(0.25 * rows));
  CHECK(fp8.links == LinkUse::in_turn);
  CHECK(fp8.units == 0);
  CHECK(transfer_of(dispatch(8, 128, Dtype::fp8_e4m3)).between == Bytes());
}

TEST_CASE("the kernels without delay take up to 256 tokens", "[experts]") {
  const Device device = sim::test::hopper_like();
  for (const auto& [tokens, name] : {std::pair{256, "deepep_low_latency"}, {257, "deepep_high_throughput"}}) {
    const ChosenKernel chosen = kernel_for({}, dispatch(64, tokens, Dtype::bf16), device);
    REQUIRE(chosen.exchange != nullptr);
    CHECK(chosen.exchange->name == name);
  }
}

}  // namespace dculab::lower::test
