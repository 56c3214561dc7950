// How many devices a load takes, and how they share the model.
#include "study/decide/fleet.hpp"

#include <string>
#include <vector>

#include "config/scenario_document.hpp"
#include "config/scenario_file.hpp"
#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "study/decide/serving_recommendation.hpp"
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
    if (layout.replicas > 0) CHECK(layout.num_devices() >= choice.num_devices());
  CHECK(fleet.servers() * 8 >= choice.num_devices());
}

TEST_CASE("one replica less misses the service level or does not carry the rate") {
  const RecommendationQuestion question = fleet_question(kLoad, {.devices = 8});
  const Layout choice = fleet_of(question).choice();
  REQUIRE(choice.replicas > 1);
  const double carried = choice.served.output_tokens_per_second / 256;
  CHECK(carried * (choice.replicas - 1) < 5);  // by the bound that the search begins with
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
  CHECK_THROWS_WITH(fleet_of(question), ContainsSubstring("none of the layouts serves the load") &&
                                            ContainsSubstring("TP 1: not one sequence fits beside the weights") &&
                                            ContainsSubstring("TP 4: takes ") && ContainsSubstring("devices or more"));
}

TEST_CASE("a latency that one request alone misses is met by no number of devices") {
  const RecommendationQuestion question = fleet_question(
      "workload: {requests: 64, prompt_tokens: 8192, output_tokens: 64, arrival: poisson, "
      "requests_per_second: 1}\nslo: {ttft: 50 ms}\n",
      {.devices = 8});
  CHECK_THROWS_WITH(fleet_of(question), ContainsSubstring("one request alone misses slo.ttft"));
}

TEST_CASE("without a rate all offered devices serve") {
  const FleetChoice fleet =
      fleet_of(fleet_question("workload: {requests: 64, prompt_tokens: 1024, output_tokens: 256}\n", {.devices = 8}));
  CHECK(fleet.rate == 0);
  CHECK(fleet.choice().num_devices() == 8);
  const auto served = [](const Layout& layout) { return layout.replicas * layout.served.output_tokens_per_second; };
  for (const Layout& layout : fleet.layouts) CHECK(served(layout) <= 1.01 * served(fleet.choice()));
  CHECK_FALSE(fleet.front().empty());
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
  CHECK(found.tokens().full_requests_per_second == Approx(found.requests_per_second()).epsilon(0.2));
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
  CHECK(*rate_of(workload) == Approx(10.0 / 9));
}

}  // namespace
}  // namespace dculab::study
