// A device's part of a mixture in expert parallelism: what it holds, what a step brings it, what cannot be shared.
#include "model/expert_shard.hpp"

#include <cmath>

#include "model/kv/kv_bytes.hpp"
#include "model/shard.hpp"
#include "tests/model/small_plan.hpp"
#include "tests/sim/mixtures.hpp"

namespace dculab {
namespace {

using sim::test::deepseek_like;

constexpr WeightFormat kFp8{Dtype::fp8_e4m3, 0};

[[nodiscard]] ExpertSharing over(int devices, int redundant = 0) {
  return {.devices = devices,
          .devices_per_node = 8,
          .redundant_experts = redundant,
          .statistics = redundant > 0 ? ExpertStatistics::seen : ExpertStatistics::none};
}

[[nodiscard]] EngineOptions options() {
  EngineOptions result;
  result.weights = kFp8;
  result.activation_dtype = Dtype::bf16;
  return result;
}

[[nodiscard]] const Op& op_of(const StepPlan& plan, OpKind kind) {
  return *std::ranges::find(plan.ops, kind, &Op::kind);
}

}  // namespace

TEST_CASE("a device holds its copies of routed experts and all else whole") {
  const ModelShape model = deepseek_like();
  for (const auto& [devices, redundant, copies] : {std::tuple{32, 32, 9}, {144, 32, 2}, {8, 0, 32}}) {
    const ModelShape part = shard_experts(model, kFp8, over(devices, redundant), {});
    CHECK(part.kinds[1].experts->held() == copies);
    CHECK(part.kinds[1].mlp == model.kinds[1].mlp);
    CHECK(part.kinds[0] == model.kinds[0]);
    const double expert = 3.0 * 2048 * 7168;
    CHECK(weight_footprint(model, kFp8).value() - weight_footprint(part, kFp8).value() ==
          Approx(4 * (256 - copies) * expert));
    CHECK(held_expert_bytes(part, kFp8).value() == Approx(4 * copies * expert));
    CHECK(kv_bytes_per_token(part, Dtype::bf16) == kv_bytes_per_token(model, Dtype::bf16));
  }
}

TEST_CASE("of a uniform load a device gets the rows of as many tokens as it has, and a little more where they differ") {
  const ModelShape part = shard_experts(deepseek_like(), kFp8, over(32, 32), {});
  const ExpertPart& its = *part.kinds[1].experts->part;
  CHECK(its.rows_per_token == Approx(8));
  for (const double tokens : {64.0, 1024.0, 16384.0}) {
    const ExpertRows rows = busiest_rows(its, tokens);
    CHECK(rows.own_tokens == tokens);
    CHECK(rows.rows >= tokens * 8 * (1 - 1e-9));
    CHECK(rows.rows <= tokens * 8 * load_of(its.copies) * 4 + std::sqrt(2 * tokens * 8 * std::log(32)) + 1);
    CHECK(rows.tokens <= rows.rows);
    CHECK(rows.touched <= 9);
    CHECK(rows.longest <= 32 * tokens);
  }
  CHECK(busiest_rows(its, 16384).touched == Approx(9));
}

TEST_CASE("a step sends tokens to their experts and back, and computes its own shared experts") {
  const ModelShape part = shard_experts(deepseek_like(), kFp8, over(32, 32), {});
  const StepPlan plan = plan_step(part, options(), uniform_batch(Phase::decode, 96, 1000));
  const Op& dispatch = op_of(plan, OpKind::dispatch_tokens);
  const Op& back = op_of(plan, OpKind::return_tokens);
  CHECK(dispatch.m == 96);
  CHECK(dispatch.n == 7168);
  CHECK(dispatch.count == 4);
  CHECK(dispatch.devices == 32);
  CHECK(dispatch.activation_dtype == Dtype::fp8_e4m3);
  CHECK(back.activation_dtype == Dtype::bf16);
  CHECK(dispatch.exchange.devices_per_node == 8);
  const Op& up = find(plan, "experts_gate_up_proj");
  CHECK(static_cast<double>(up.m) == Approx(dispatch.exchange.expert_rows).margin(0.5));
  CHECK(up.groups.count == 9);
  CHECK(find(plan, "down_proj").m == 96);
  CHECK_FALSE(has(plan, "mlp_all_reduce"));
  CHECK_FALSE(has(plan, "tokens_all_gather"));
}

TEST_CASE("a token goes to the nodes of its groups alone where groups lie on nodes") {
  const auto nodes = [](int devices, int redundant) {
    return shard_experts(deepseek_like(), kFp8, over(devices, redundant), {}).kinds[1].experts->part->other_nodes;
  };
  // Of 4 nodes with two groups each, 4 of 8 groups reach: 4 * (40 / 70 * (1 - (3/4)^8) + 15 / 70 * (1 - (1/2)^8)).
  const double reached_nodes = 4 * (40.0 / 70 * (1 - std::pow(0.75, 8)) + 15.0 / 70 * (1 - std::pow(0.5, 8)));
  CHECK(nodes(32, 32) == Approx(0.75 * reached_nodes));
  CHECK(nodes(32, 0) == Approx(nodes(32, 32)));  // experts in order, as many to each device
  // Of 16 nodes with half a group each, 4 of 8 groups reach.
  CHECK(nodes(128, 0) == Approx(15.0 / 16 * 16 * 0.5 * (1 - std::pow(1 - 1.0 / 8, 8))));
  CHECK(nodes(64, 64) == Approx(7.0 / 8 * 4 * (1 - std::pow(0.75, 8))));  // four nodes, whichever the groups' are
  CHECK(nodes(144, 32) == Approx(17 * (1 - std::pow(17.0 / 18, 8))).epsilon(0.02));
  CHECK(nodes(8, 0) == 0);
}

TEST_CASE("devices that share the attention each send their part of the tokens, and gather what comes back") {
  ExpertSharing sharing = over(32, 32);
  sharing.tensor_parallel_size = 4;
  const ModelShape part = shard_experts(deepseek_like(), kFp8, sharing, {});
  CHECK(part.kinds[1].mla()->num_attention_heads == 32);
  CHECK(part.kinds[0].mlp.intermediate_size == 18432 / 4);
  CHECK(part.kinds[1].mlp.intermediate_size == 2048);
  const StepPlan plan = plan_step(part, options(), uniform_batch(Phase::decode, 96, 1000));
  CHECK(op_of(plan, OpKind::dispatch_tokens).m == 24);
  CHECK(op_of(plan, OpKind::route_tokens).m == 24);
  CHECK(find(plan, "tokens_all_gather").m == 24);
  CHECK(find(plan, "tokens_all_gather").devices == 4);
  CHECK(find(plan, "attention_all_reduce").m == 96);
  const StepPlan apart = plan_step(shard_experts(deepseek_like(), kFp8, over(32, 32), {}), options(),
                                   uniform_batch(Phase::decode, 24, 1000));
  CHECK(find(plan, "experts_gate_up_proj").m == find(apart, "experts_gate_up_proj").m);
}

TEST_CASE("a shared expert that is placed is one that every token goes to") {
  ExpertSharing sharing = over(320, 63);
  sharing.shared = SharedExperts::placed;
  const ModelShape part = shard_experts(deepseek_like(), kFp8, sharing, {});
  const ExpertPart& its = *part.kinds[1].experts->part;
  CHECK(its.rows_per_token == Approx(9));
  CHECK(its.copies.size() == 1);
  CHECK(its.copies.front() == Approx(8.0 / 256));  // 32 copies of the shared one have what a routed one has
  const StepPlan plan = plan_step(part, options(), uniform_batch(Phase::decode, 64, 1000));
  CHECK(std::ranges::count(plan.ops, std::string_view("down_proj"), &Op::name) == 1);  // of the dense layers
}

TEST_CASE("a skewed load brings the busiest device more rows, and redundant experts less of that") {
  const ExpertLoad skewed{.zipf_exponent = 0.6};
  const auto rows = [&](int redundant, const ExpertLoad& load) {
    const ModelShape part = shard_experts(deepseek_like(), kFp8, over(32, redundant), load);
    return busiest_rows(*part.kinds[1].experts->part, 1024).rows;
  };
  CHECK(rows(0, skewed) > 1.3 * rows(0, {}));
  CHECK(rows(64, skewed) < 0.8 * rows(0, skewed));
  CHECK(rows(64, skewed) >= 1024 * 8);
}

TEST_CASE("what cannot be shared so is told") {
  const ModelShape model = deepseek_like();
  CHECK(expert_shard_problems(model, kFp8, over(144, 32)).empty());
  CHECK_THAT(expert_shard_problems(model, kFp8, over(144)).front(),
             ContainsSubstring("do not divide over 144 devices"));
  CHECK_THAT(expert_shard_problems(small_model(), kFp8, over(8)).front(), ContainsSubstring("has no experts to share"));
  ExpertSharing sharing = over(32);
  sharing.tensor_parallel_size = 5;
  CHECK_THAT(expert_shard_problems(model, kFp8, sharing).front(), ContainsSubstring("do not divide 32 devices"));
  ModelShape wide = model;
  wide.kinds[1].mlp.intermediate_size = 4096;
  sharing = over(320, 63);
  sharing.shared = SharedExperts::placed;
  CHECK_THAT(expert_shard_problems(wide, kFp8, sharing).back(), ContainsSubstring("keep them replicated"));
}

}  // namespace dculab
