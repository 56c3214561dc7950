// The deployment of a scenario: what replicas share, settings of each pool, the KV store, and what is refused.
#include "config/scenario_file.hpp"
#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

[[nodiscard]] Scenario read_deployment(const std::string& deployment) {
  const std::string text = R"(schema: dculab/scenario/1
question: How?
model: deepseek-v3
machine: h800
deployment: )" + deployment +
                           "\n";
  return read_scenario("test.yaml", parse_yaml("test.yaml", text));
}

}  // namespace

TEST_CASE("a pool has the deployment's settings but for its own") {
  const sim::Deployment deployment =
      read_deployment(
          "{expert_parallel_size: 32, num_redundant_experts: 32, micro_batches: 2, prefill_replicas: 2, "
          "decode_replicas: 1, decode: {expert_parallel_size: 144, rebalance_interval: 10 s, shared_experts: placed, "
          "dispatch_dtype: bf16}, kv_store: {read_bandwidth: 40 GiB/s, latency: 1 ms, hit_rate: 0.5}}")
          .deployment;
  CHECK_FALSE(deployment.prefill);
  const sim::ReplicaDevices prefill = deployment.of(ReplicaRole::prefill), decode = deployment.of(ReplicaRole::decode);
  CHECK(prefill.experts.size == 32);
  CHECK(prefill.experts.micro_batches == 2);
  CHECK(decode.experts.size == 144);
  CHECK(decode.experts.num_redundant_experts == 32);
  CHECK(decode.experts.rebalance_interval == Seconds(10));
  CHECK(decode.experts.shared_experts == SharedExperts::placed);
  CHECK(decode.experts.dispatch_dtype == Dtype::bf16);
  CHECK(deployment.devices() == 2 * 32 + 144);
  REQUIRE(deployment.kv_store);
  CHECK(deployment.kv_store->read_bandwidth == BytesPerSecond(40 * 1073741824.0));
  CHECK(deployment.kv_store->latency == Seconds(1e-3));
  CHECK(deployment.kv_store->hit_rate == 0.5);
}

TEST_CASE("groups of devices for attention have sequences of their own") {
  const sim::Deployment deployment = read_deployment("{expert_parallel_size: 32, tensor_parallel_size: 4}").deployment;
  CHECK(deployment.of(ReplicaRole::both).ranks() == 8);
  CHECK(deployment.devices() == 32);
}

TEST_CASE("role switching has thresholds of its own or the defaults") {
  CHECK_FALSE(read_deployment("{prefill_replicas: 2, decode_replicas: 2}").deployment.role_switching);
  const auto rule =
      read_deployment("{prefill_replicas: 2, decode_replicas: 2, role_switching: {decode_above: 0.8, hold: 5 s}}")
          .deployment.role_switching;
  REQUIRE(rule);
  CHECK(*rule == RoleSwitching{.decode_above = 0.8, .hold = Seconds(5)});
  CHECK(read_deployment("{prefill_replicas: 2, decode_replicas: 2, role_switching: {}}").deployment.role_switching ==
        RoleSwitching{});
}

TEST_CASE("a deployment without experts is as it was") {
  const sim::Deployment deployment =
      read_deployment("{tensor_parallel_size: 2, pipeline_parallel_size: 3, data_parallel_size: 4}").deployment;
  CHECK(deployment.devices() == 24);
  CHECK_FALSE(deployment.shares_experts());
  CHECK_FALSE(deployment.kv_store);
}

TEST_CASE("a wrong deployment is refused where it stands") {
  const auto refused = [](const std::string& deployment, const std::string& why) {
    CHECK_THROWS_WITH(read_deployment(deployment), ContainsSubstring("test.yaml:5") && ContainsSubstring(why));
  };
  refused("{expert_parallel_size: 32, tensor_parallel_size: 5}", "no whole groups of tensor_parallel_size, 5");
  refused("{prefill: {expert_parallel_size: 0}}", "deployment.prefill.expert_parallel_size");
  refused("{decode: {replicas: 2}}", "replicas");
  refused("{micro_batches: 3}", "deployment.micro_batches");
  refused("{shared_experts: elsewhere}", "replicated");
  refused("{rebalance_interval: 10}", "rebalance_interval");
  refused("{kv_store: {hit_rate: 0.5}}", "kv_store.read_bandwidth");
  refused("{kv_store: {read_bandwidth: 40 GiB/s, hit_rate: 1.5}}", "hit_rate");
  refused("{expert_parallel_size: 1024, data_parallel_size: 1024}", "devices; at most");
}

}  // namespace dculab::config
