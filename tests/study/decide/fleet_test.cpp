// How many devices a load takes, and how they share the model.
#include "study/decide/fleet.hpp"

#include <string>
#include <vector>

#include "config/scenario_document.hpp"
#include "config/scenario_file.hpp"
#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "study/decide/doubt.hpp"
#include "study/decide/replica_service.hpp"
#include "study/decide/serving_recommendation.hpp"
#include "study/scenario/request_workload.hpp"
#include "study/scenario/resolve.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

// Qwen3-32B on K100-AIs with vLLM unless `keys` say otherwise.
[[nodiscard]] RecommendationQuestion fleet_question(const std::string& keys, FleetOffer offer) {
  RecommendationQuestion question;
  question.scenario =
      config::read_scenario("test", config::parse_yaml("test",
                                                       "schema: dculab/scenario/1\nquestion: q\nmodel: qwen3-32b\n"
                                                       "machine: k100-ai\nstack: vllm\n" +
                                                           keys));
  question.offer = offer;
  question.count_requests = true;
  return question;
}

constexpr const char* kLoad =
    "workload: {requests: 64, prompt_tokens: 1024, output_tokens: 256, arrival: poisson, requests_per_second: 5}\n"
    "slo: {ttft: 2 s, tpot: 60 ms}\n";

[[nodiscard]] FleetChoice fleet_of(const RecommendationQuestion& question) {
  return *recommend_serving(question, "k100-ai").fleet;
}

TEST_CASE("layouts are the products of stages and shared layers that a server holds") {
  ModelShape dense;
  std::vector<std::string> names;
  for (const sim::ReplicaDevices& devices : replica_layouts(dense, 4)) names.push_back(layout_text(devices));
  CHECK(names == std::vector<std::string>{"TP 1", "TP 2", "TP 1 x PP 2", "TP 4", "TP 2 x PP 2", "TP 1 x PP 4"});
  for (const sim::ReplicaDevices& devices : replica_layouts(dense, 6)) {
    CHECK(devices.devices() <= 6);
    CHECK_FALSE(devices.shares_experts());
  }
}

TEST_CASE("the chosen layout serves the load, and no simulated one does on fewer devices") {
  const FleetChoice fleet = fleet_of(fleet_question(kLoad, {.devices = 8}));
  const Layout& choice = fleet.choice();
  REQUIRE(choice.simulated);
  CHECK(choice.simulated->slo_attainment >= 0.9);
  CHECK(choice.simulated->requests_per_second == Approx(5.0 / choice.replicas));
  for (const Layout& layout : fleet.layouts)
    if (layout.simulated) CHECK(layout.num_devices() >= choice.num_devices());
  CHECK(fleet.servers() * 8 >= choice.num_devices());
}

TEST_CASE("one replica less misses the service level") {
  const RecommendationQuestion question = fleet_question(kLoad, {.devices = 8});
  const Layout choice = fleet_of(question).choice();
  REQUIRE(choice.replicas > 1);
  const sim::Machine machine = resolve_machine(question.scenario, "k100-ai");
  const ModelShape model = resolve_model(question.scenario);
  config::Scenario scenario = question.scenario;
  set_replica(choice.devices, scenario.deployment);
  RequestWorkload workload = resolve_requests(scenario, model);
  const sim::ServingCase serving = serving_case(scenario, machine, model, mean_load(workload, scenario.slo, {}));
  workload.requests = 256;
  const auto with = [&](int replicas) {
    RequestWorkload share = share_of(workload, replicas);
    share.requests = 256;
    return serve_requests(serving, choice.setting, choice.served.batch, share, scenario.slo);
  };
  CHECK(with(choice.replicas - 1).slo_attainment < 0.9);
  CHECK(with(choice.replicas + 1).slo_attainment >= 0.9);
}

TEST_CASE("a layout that is chosen takes as long as the same that is given") {
  // The bridge of these cards joins two.
  RecommendationQuestion offered = fleet_question(kLoad, {.devices = 8});
  RecommendationQuestion given =
      fleet_question(std::string(kLoad) + "deployment: {tensor_parallel_size: 8}\n", {.devices = 8});
  given.offer.reset();
  const Recommendation plain = recommend_serving(given, "h100-pcie");
  const Recommendation chosen = recommend_serving(offered, "h100-pcie");
  for (const Layout& layout : chosen.fleet->layouts)
    if (layout_text(layout.devices) == "TP 8" && layout.served.batch > 0)
      CHECK(layout.served.tpot.value() / layout.served.batch ==
            Approx(plain.served.tpot.value() / plain.served.batch).epsilon(0.2));
}

TEST_CASE("replicas stay within a server, or have servers of their own") {
  const sim::ReplicaDevices four{.tensor_parallel_size = 4};
  const FleetOffer six{.devices = 6, .servers = 2};
  CHECK(six.replicas_of_server(four) == 1);
  CHECK(six.most_replicas(four) == 2);  // two devices of each server are left over
  const FleetOffer three{.devices = 3, .servers = 3};
  CHECK(three.servers_of_replica(four) == 2);
  CHECK(three.most_replicas(four) == 1);
  const FleetOffer cpu{.devices = 8, .servers = 3, .one_replica_a_server = true};
  CHECK(cpu.most_replicas({}) == 3);
  CHECK_FALSE(FleetOffer{.devices = 8}.most_replicas(four));
}

TEST_CASE("what few requests leave open counts as met") {
  ServiceLevel slo;
  slo.share = 0.9;
  CHECK(may_meet({.requests = 16, .slo_attainment = 14.0 / 16}, slo));
  CHECK_FALSE(may_meet({.requests = 1000, .slo_attainment = 0.875}, slo));
}

TEST_CASE("more requests take no fewer devices") {
  std::int64_t before = 0;
  for (const char* rate : {"0.5", "2", "8"}) {
    RecommendationQuestion question = fleet_question(kLoad, {.devices = 8});
    config::set_override(question.scenario.document, {"workload.requests_per_second", rate});
    question.scenario = config::read_scenario("test", question.scenario.document);
    const std::int64_t devices = fleet_of(question).choice().num_devices();
    CHECK(devices >= before);
    before = devices;
  }
}

TEST_CASE("devices that cannot serve a load are refused with what each layout lacks") {
  const RecommendationQuestion question = fleet_question(kLoad, {.devices = 4, .servers = 1});
  CHECK_THROWS_WITH(fleet_of(question), ContainsSubstring("no layout serves the load") &&
                                            ContainsSubstring("not one sequence fits beside the weights: TP 1") &&
                                            ContainsSubstring("needs more devices than are offered, 12 or more: TP 4"));
}

TEST_CASE("a refused layout says which time it needs") {
  RecommendationQuestion question = fleet_question(kLoad, {.devices = 2});
  config::set_override(question.scenario.document, {"slo.tpot", "1 ms"});
  question.scenario = config::read_scenario("test", question.scenario.document);
  CHECK_THROWS_WITH(fleet_of(question), ContainsSubstring("one sequence alone takes longer a token than slo.tpot, ") &&
                                            ContainsSubstring(" ms at best: TP "));
}

TEST_CASE("the replicas that leave no doubt meet the service level with slow steps, one less does not") {
  const RecommendationQuestion question = fleet_question(kLoad, {.devices = 8});
  const Recommendation found = recommend_serving(question, "k100-ai");
  REQUIRE(doubt_of(*found.expected, question.scenario.slo) == Doubt::service_level);
  REQUIRE(found.replicas_without_doubt);
  CHECK(*found.replicas_without_doubt > found.replicas);
  sim::SimulatedServer server = replica_server(found.serving, found.setting, found.max_num_seqs);
  server.options.max_num_batched_tokens = found.tokens().max_num_batched_tokens;
  server.step_scale = found.expected->slowest;
  const RequestWorkload all = resolve_requests(question.scenario, found.serving.model);
  const auto attainment = [&](int replicas) {
    RequestWorkload part = share_of(all, replicas);
    part.requests = static_cast<int>(found.expected->requests);
    return sim::simulate(server, part, question.scenario.slo).metrics.share_within_objective();
  };
  CHECK(attainment(*found.replicas_without_doubt) >= 0.9);
  CHECK(attainment(*found.replicas_without_doubt - 1) < 0.9);
}

TEST_CASE("where waits miss the service level, more run at a time than meet TPOT while all of them run") {
  RecommendationQuestion question = fleet_question(
      "workload: {requests: 256, prompt_tokens: 1024, output_tokens: 256, arrival: poisson, "
      "requests_per_second: 1}\nslo: {ttft: 1 s, tpot: 45 ms}\ndeployment: {tensor_parallel_size: 4}\n",
      {.devices = 8});
  question.offer.reset();
  const Recommendation found = recommend_serving(question, "k100-ai");
  CHECK(found.served.limit == sim::SequenceLimit::tpot);
  CHECK(found.max_num_seqs > found.served.batch);
  const RequestWorkload workload = resolve_requests(question.scenario, found.serving.model);
  const auto attainment = [&](int batch) {
    return serve_requests(found.serving, found.setting, batch, workload, question.scenario.slo).slo_attainment;
  };
  CHECK(attainment(found.max_num_seqs) > attainment(found.served.batch));
}

TEST_CASE("a latency that one request alone misses is met by no number of devices") {
  const RecommendationQuestion question = fleet_question(
      "workload: {requests: 64, prompt_tokens: 8192, output_tokens: 64, arrival: poisson, "
      "requests_per_second: 1}\nslo: {ttft: 50 ms}\n",
      {.devices = 8});
  CHECK_THROWS_WITH(fleet_of(question), ContainsSubstring("one request alone misses slo.ttft"));
}

TEST_CASE("without a rate the offered devices are asked for the largest that meets the service level") {
  const RecommendationQuestion question = fleet_question(
      "workload: {requests: 64, prompt_tokens: 1024, output_tokens: 256}\nslo: {ttft: 2 s, tpot: 60 ms}\n",
      {.devices = 8, .servers = 1});
  const Recommendation found = recommend_serving(question, "k100-ai");
  REQUIRE(found.fleet->is_largest_rate);
  CHECK(found.expected->slo_attainment.value >= question.scenario.slo.share);
  CHECK(found.fleet->choice().num_devices() <= 8);
  // More takes more devices.
  const auto devices_for = [](double rate) {
    RecommendationQuestion asked = fleet_question(kLoad, {.devices = 8});
    config::set_override(asked.scenario.document, {"workload.requests_per_second", std::to_string(rate)});
    asked.scenario = config::read_scenario("test", asked.scenario.document);
    return fleet_of(asked).choice().num_devices();
  };
  CHECK(devices_for(0.9 * found.fleet->rate) <= 8);
  CHECK(devices_for(1.2 * found.fleet->rate) > 8);
}

TEST_CASE("without a rate all offered devices serve") {
  const FleetChoice fleet =
      fleet_of(fleet_question("workload: {requests: 64, prompt_tokens: 1024, output_tokens: 256}\n", {.devices = 8}));
  CHECK(fleet.rate == 0);
  CHECK(fleet.choice().num_devices() == 8);
  const auto served = [](const Layout& layout) { return layout.replicas * layout.served.output_tokens_per_second; };
  for (const Layout& layout : fleet.layouts) CHECK(served(layout) <= 1.01 * served(fleet.choice()));
  CHECK_FALSE(fleet.rivals().empty());
  for (const std::size_t rival : fleet.rivals()) CHECK(rival != fleet.chosen);
}

TEST_CASE("a model that no server holds is divided over several") {
  RecommendationQuestion question =
      fleet_question("workload: {requests: 64, prompt_tokens: 256, output_tokens: 64}\n", {.devices = 2});
  config::set_override(question.scenario.document, {"model", "llama-3.1-405b"});
  question.scenario = config::read_scenario("test", question.scenario.document);
  const FleetChoice fleet = fleet_of(question);
  CHECK(fleet.choice().devices.devices() > 2);
  CHECK(fleet.servers() == fleet.choice().replicas * (fleet.choice().devices.devices() / 2));
}

TEST_CASE("a KV format that a program may lack is not taken unless it is asked for") {
  const RecommendationQuestion question = fleet_question(kLoad, {.devices = 8});
  for (const Layout& layout : fleet_of(question).layouts)
    if (layout.served.batch > 0) CHECK(layout.setting.kv_cache_dtype == Dtype::f16);
}

TEST_CASE("of experts that devices share each group has its own sequences") {
  RecommendationQuestion question = fleet_question(
      "workload: {requests: 64, prompt_tokens: 1024, output_tokens: 256, arrival: poisson, requests_per_second: 20}\n"
      "slo: {ttft: 2 s, tpot: 50 ms}\n",
      {.devices = 8});
  config::set_override(question.scenario.document, {"model", "qwen3-30b-a3b"});
  question.scenario = config::read_scenario("test", question.scenario.document);
  const Recommendation found = recommend_serving(question, "k100-ai");
  bool shares = false;
  for (const Layout& layout : found.fleet->layouts) shares = shares || layout.devices.shares_experts();
  CHECK(shares);
  // What is simulated with a full batch agrees with the closed form, whatever the layout.
  const sim::Served full = sim::serve_with(found.serving, found.setting, found.max_num_seqs);
  CHECK(found.tokens().full_requests_per_second ==
        Approx(full.output_tokens_per_second / found.serving.load.output_tokens).epsilon(0.2));
}

TEST_CASE("a replica gets its share of the requests") {
  RequestWorkload workload;
  workload.requests = 10;
  workload.requests_per_second = 6;
  workload.arrival = ArrivalKind::gamma;
  CHECK(share_of(workload, 3).requests_per_second == Approx(2));
  CHECK(share_of(workload, 3).requests == 3);
  CHECK(rate_of(workload) == 6.0);
  for (int index = 0; index < 10; ++index)
    workload.recorded.push_back({.arrival = Seconds(index), .prompt_tokens = 1 + index});
  workload.arrival = ArrivalKind::replay;
  const RequestWorkload third = share_of(workload, 3);
  REQUIRE(third.recorded.size() == 4);
  CHECK(third.recorded[1].prompt_tokens == 4);
  CHECK(*rate_of(workload) == Approx(1));  // nine gaps of a second
}

}  // namespace
}  // namespace dculab::study
