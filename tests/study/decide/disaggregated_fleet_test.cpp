// How many prefill and how many decode replicas a load takes.
#include "study/decide/disaggregated_fleet.hpp"

#include <string>
#include <utility>

#include "config/scenario_file.hpp"
#include "config/yaml_text.hpp"
#include "study/decide/disaggregated_recommendation.hpp"
#include "study/decide/pool_growth.hpp"
#include "study/decide/pool_layouts.hpp"
#include "study/decide/serving_case.hpp"
#include "study/scenario/request_workload.hpp"
#include "study/scenario/resolve.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

constexpr const char* kPoolLoad =
    "workload: {requests: 256, prompt_tokens: 1024, output_tokens: 128, arrival: poisson, requests_per_second: 4}\n"
    "slo: {ttft: 2 s, tpot: 60 ms}\n";

// Qwen3-32B with vLLM, decode on K100-AIs.
[[nodiscard]] RecommendationQuestion pools_question(const std::string& keys, FleetOffer offer) {
  RecommendationQuestion question;
  question.scenario =
      config::read_scenario("test", config::parse_yaml("test",
                                                       "schema: dculab/scenario/1\nquestion: q\nmodel: qwen3-32b\n"
                                                       "machine: h100-sxm\nstack: vllm\n" +
                                                           keys));
  question.offer = offer;
  question.decode_machine = "k100-ai";
  return question;
}

[[nodiscard]] PoolsService with_replicas(const RecommendationQuestion& question, const DisaggregatedFleet& fleet,
                                         int prefill, int decode) {
  sim::SimulatedServer server = fleet.server;
  server.deployment.prefill_replicas = prefill;
  server.deployment.decode_replicas = decode;
  return serve_pools(server, resolve_requests(question.scenario, server.model), question.scenario.slo);
}

TEST_CASE("pools serve the load, and no simulated candidate does on fewer devices") {
  const RecommendationQuestion question = pools_question(kPoolLoad, {.devices = 8});
  const DisaggregatedRecommendation found = recommend_disaggregated(question, "h100-sxm");
  const DisaggregatedFleet& fleet = found.fleet;
  REQUIRE(fleet.choice().simulated);
  CHECK(fleet.choice().simulated->slo_attainment >= 0.9);
  CHECK(fleet.simulations <= kMostPoolSimulations);
  CHECK(fleet.num_devices() == fleet.server.deployment.devices());
  for (const PoolPair& pair : fleet.pairs)
    if (pair.simulated) CHECK(fleet.num_devices(pair) >= fleet.num_devices());
  CHECK(found.prefill_machine().name == "h100-sxm");
  CHECK(found.decode_machine().name == "k100-ai");
  REQUIRE(found.alone.size() == 2);
  for (const FleetAlone& alone : found.alone) CHECK(alone.fleet);
  CHECK(fleet.expected.tpot_p90.low <= fleet.expected.tpot_p90.value);
}

TEST_CASE("pools gain nothing where one kind of machine alone needs no more of its devices") {
  DisaggregatedRecommendation found = recommend_disaggregated(pools_question(kPoolLoad, {.devices = 8}), "h100-sxm");
  PoolPair& pair = found.fleet.pairs[found.fleet.chosen];
  pair.prefill_replicas = pair.decode_replicas = 0;
  CHECK(found.no_worse() == nullptr);
  pair.prefill_replicas = 1000;
  CHECK(found.no_worse() == &found.alone[0]);
  pair.prefill_replicas = 0;
  pair.decode_replicas = 1000;
  CHECK(found.no_worse() == &found.alone[1]);
  found.fleet.two_kinds = false;  // then both pools are of one kind, and it is its devices in both that count
  CHECK(found.no_worse() == &found.alone[0]);
}

TEST_CASE("a slower link makes TPOT longer, and TTFT not") {
  const RecommendationQuestion question = pools_question(kPoolLoad, {.devices = 8});
  const DisaggregatedFleet fleet = recommend_disaggregated(question, "h100-sxm").fleet;
  const PoolPair& pair = fleet.choice();
  DisaggregatedFleet slow = fleet;
  *slow.server.deployment.kv_transfer_bandwidth *= 0.25;
  const PoolsService before = with_replicas(question, fleet, pair.prefill_replicas, pair.decode_replicas);
  const PoolsService after = with_replicas(question, slow, pair.prefill_replicas, pair.decode_replicas);
  CHECK(after.tpot > before.tpot);
  CHECK(after.service.ttft == before.service.ttft);
}

TEST_CASE("decode replicas do not change when the first token comes") {
  const RecommendationQuestion question = pools_question(kPoolLoad, {.devices = 8});
  const DisaggregatedFleet fleet = recommend_disaggregated(question, "h100-sxm").fleet;
  CHECK(with_replicas(question, fleet, 1, 1).service.ttft == with_replicas(question, fleet, 1, 3).service.ttft);
  CHECK(with_replicas(question, fleet, 2, 1).service.ttft <= with_replicas(question, fleet, 1, 1).service.ttft);
}

TEST_CASE("a tighter level and more requests take no fewer devices") {
  const auto devices = [](const char* tpot, const char* rate) {
    const std::string load =
        std::string("workload: {requests: 256, prompt_tokens: 1024, output_tokens: 128, arrival: ") +
        "poisson, requests_per_second: " + rate + "}\nslo: {ttft: 2 s, tpot: " + tpot + "}\n";
    return recommend_disaggregated(pools_question(load, {.devices = 8}), "h100-sxm").fleet.num_devices();
  };
  const std::int64_t some = devices("60 ms", "4");
  CHECK(devices("35 ms", "4") >= some);
  CHECK(devices("60 ms", "16") > some);
}

TEST_CASE("pools on one kind of machine may share servers") {
  RecommendationQuestion question = pools_question(kPoolLoad, {.devices = 8});
  question.decode_machine = "h100-sxm";
  const DisaggregatedRecommendation found = recommend_disaggregated(question, "h100-sxm");
  CHECK_FALSE(found.fleet.server.decode_machine);
  CHECK(found.alone.size() == 1);
  CHECK(found.fleet.servers() * 8 >= found.fleet.num_devices());
}

TEST_CASE("replicas of two sizes fill servers, the largest first") {
  const FleetOffer offer{.devices = 8};
  const sim::ReplicaDevices two{.tensor_parallel_size = 2}, four{.tensor_parallel_size = 4};
  CHECK(offer.servers_for({{2, two}, {1, four}}) == 1);
  CHECK(offer.servers_for({{3, two}, {1, four}}) == 2);
  CHECK(offer.servers_for({{1, two}, {3, four}}) == 2);
  CHECK(FleetOffer{.devices = 8, .one_replica_a_server = true}.servers_for({{2, two}, {1, four}}) == 3);
}

TEST_CASE("the pool that misses its part gets replicas") {
  ServiceLevel slo;
  slo.ttft = Seconds(1);
  slo.tpot = Seconds(0.05);
  const auto next = [&slo](Seconds ttft, Seconds tpot) {
    PoolGrowth growth;
    return growth.next({2, 16}, {.service = {.ttft = ttft}, .tpot = tpot}, slo).value();
  };
  CHECK(next(Seconds(2), Seconds(0.04)).prefill == 3);
  CHECK(next(Seconds(2), Seconds(0.04)).decode == 16);
  CHECK(next(Seconds(0.5), Seconds(0.06)).prefill == 2);
  CHECK(next(Seconds(0.5), Seconds(0.06)).decode == 18);
  CHECK(next(Seconds(0.9), Seconds(0.01)).prefill == 3);  // each within, but not both: the nearer
  // More decode replicas do not help, then more prefill replicas do not.
  PoolGrowth growth;
  const PoolsService stays{.service = {.ttft = Seconds(0.5)}, .tpot = Seconds(0.1)};
  REQUIRE(growth.next({1, 1}, stays, slo)->decode == 2);
  REQUIRE(growth.next({1, 2}, stays, slo)->prefill == 2);
  CHECK_FALSE(growth.next({2, 2}, stays, slo));
}

TEST_CASE("a decode replica serves more sequences within a TPOT than one that prefills, too") {
  const RecommendationQuestion question = pools_question(kPoolLoad, {.devices = 8});
  const DisaggregatedRecommendation found = recommend_disaggregated(question, "h100-sxm");
  for (const Layout& pool : found.fleet.decode)
    for (const Layout& both : found.alone[1].fleet->layouts)
      if (layout_text(pool.devices) == layout_text(both.devices) && both.served.batch > 0)
        CHECK(pool.served.batch >= both.served.batch);
}

TEST_CASE("a latency without waits grows with the rate, and is no longer than the simulated one") {
  const config::Scenario scenario = pools_question(kPoolLoad, {.devices = 8}).scenario;
  const sim::Machine first = resolve_machine(scenario, "h100-sxm"), second = resolve_machine(scenario, "k100-ai");
  const ModelShape model = resolve_model(scenario);
  const RequestWorkload workload = resolve_requests(scenario, model);
  const sim::SteadyLoad load = mean_load(workload, scenario.slo, {});
  const PoolLink link = link_between(scenario, model, first, &second);
  const auto of_four = [&](ReplicaRole role, const sim::Machine& machine) {
    const LayoutQuestion question{scenario, machine, model, load, 64};
    for (PoolLayout& each : pool_layouts(role, question, link.deployment, {Dtype::f16}, 8))
      if (layout_text(each.tried.layout.devices) == "TP 4") return std::move(each);
    return PoolLayout{};
  };
  const PoolLayout prefill = of_four(ReplicaRole::prefill, first), decode = of_four(ReplicaRole::decode, second);
  REQUIRE(decode.tried.layout.served.batch > 8);
  CHECK(decode.alone < decode.tried.layout.served.tpot);
  CHECK(requests_per_second(decode.tried.layout, load) > 4);
  const Seconds calm = latency_without_waits(prefill, decode, 0.01), busy = latency_without_waits(prefill, decode, 4);
  CHECK(calm.value() == Approx((prefill.alone + 128 * decode.alone).value()).epsilon(0.01));
  CHECK(busy > calm);
  const sim::SimulatedServer server = pools_server({prefill.tried, decode.tried, 1, 1}, link);
  const ReplicaService served = serve_pools(server, workload, scenario.slo).service;
  CHECK(busy < 1.02 * served.latency_mean);
  CHECK(busy > 0.7 * served.latency_mean);
}

TEST_CASE("disaggregated serving is refused in words that say what to add") {
  const auto refused = [](const RecommendationQuestion& question, const std::string& text) {
    CHECK_THROWS_WITH(recommend_disaggregated(question, "h100-sxm"), ContainsSubstring(text));
  };
  RecommendationQuestion question = pools_question(kPoolLoad, {.devices = 8});
  question.offer.reset();
  refused(question, "add --devices N");
  refused(pools_question("workload: {requests: 64, prompt_tokens: 1024, output_tokens: 256}\n", {.devices = 8}),
          "add --requests-per-second");
  question = pools_question(kPoolLoad, {.devices = 8});
  question.decode_machine = "z100-coopt";
  refused(question, "no network_link");
}

TEST_CASE("layouts that cannot serve a load are refused with what each lacks") {
  const RecommendationQuestion question = pools_question(
      "workload: {requests: 256, prompt_tokens: 1024, output_tokens: 64, arrival: poisson, requests_per_second: 4}\n"
      "slo: {ttft: 1 ms, tpot: 60 ms}\n",
      {.devices = 8});
  CHECK_THROWS_WITH(recommend_disaggregated(question, "h100-sxm"),
                    ContainsSubstring("no layouts serve the load") &&
                        ContainsSubstring("one request alone misses slo.ttft, ") &&
                        ContainsSubstring(" at best: prefill TP 8") &&
                        ContainsSubstring("not one sequence fits beside the weights: decode TP 1"));
}

TEST_CASE("a latency that one request alone misses is met by no pools") {
  const RecommendationQuestion question = pools_question(
      "workload: {requests: 256, prompt_tokens: 1024, output_tokens: 128, arrival: poisson, requests_per_second: 4}\n"
      "slo: {latency: 200 ms}\n",
      {.devices = 8});
  CHECK_THROWS_WITH(recommend_disaggregated(question, "h100-sxm"),
                    ContainsSubstring("a request of mean lengths alone takes longer than slo.latency: prefill TP 1"));
}

}  // namespace
}  // namespace dculab::study
