// The closed form of a service with pools for prefill and decode.
#include "sim/study/service_run.hpp"

#include "tests/sim/mixture_servers.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim {
namespace {

using namespace test;

TEST_CASE("a pool of a service answers as many tokens as its slowest part lets it", "[experts]") {
  SimulatedServer server = mixture_server(pools(32, 144));
  const OfflineRequests work{1, 4096, 1024, WalkedBlocks::own};
  const auto run = [&] { return service_run(server.machine, server.model, server.options, server.deployment, work); };
  const ServiceRun all = run();
  CHECK(all.decode.batch == 32);
  CHECK(all.decode.tokens_per_second == Approx(8 * 32 / all.decode.steps.value()));
  CHECK(all.prefill.measured_run.steps.size() == 2);  // 4096 tokens in chunks of 2048
  CHECK(all.prefill.tokens_per_second == Approx(8 * 4096 / all.prefill.period().value()));
  for (const ServicePool* pool : {&all.prefill, &all.decode}) {
    Seconds sum;
    for (const auto& [term, time] : pool->terms)
      if (term != "hidden exchange") sum += time;
    CHECK(sum.value() == Approx(pool->steps.value()));
  }
  server.deployment.kv_store = KvStore{.read_bandwidth = 40 * kGBs, .hit_rate = 0.5};
  const ServiceRun hits = run();
  CHECK(hits.prefill.tokens == 2048);
  CHECK(hits.prefill.tokens_per_second > 1.5 * all.prefill.tokens_per_second);
  server.deployment.kv_store->read_bandwidth = 0.1 * kGBs;
  CHECK(run().prefill.period() == run().prefill.reading);
  CHECK(bound_of(run().prefill).name == "KV reads");
}

TEST_CASE("a prefill pool computes no more prompts at a time than its memory holds", "[experts]") {
  SimulatedServer server = mixture_server(pools(32, 144));
  server.options.max_num_batched_tokens = 32 * 1024;
  const OfflineRequests work{1, 1024, 16, WalkedBlocks::own};
  const auto prefill = [&] {
    return service_run(server.machine, server.model, server.options, server.deployment, work).prefill;
  };
  CHECK(prefill().batch == 32);
  CHECK(prefill().limit == BatchLimit::requests);
  const ModelShape part =
      part_of_a_device(server.deployment.of(ReplicaRole::prefill), server.machine, server.model, server.options);
  const auto fits = [&] {
    return sequences_that_fit(server.machine, part, server.options, {1, 1024, 1, WalkedBlocks::own});
  };
  while (fits() >= 5) server.options.gpu_memory_utilization -= 1e-4;
  REQUIRE(fits() > 0);
  CHECK(prefill().batch == fits());
  CHECK(prefill().limit == BatchLimit::memory);
  server.deployment.kv_store = KvStore{.read_bandwidth = 40 * kGBs, .hit_rate = 0.5};
  CHECK(prefill().batch == fits());  // hits take memory as well
  CHECK(prefill().tokens == fits() * 512);
}

TEST_CASE("what limits a pool is what it waits for, or the largest term of its steps", "[experts]") {
  ServicePool pool;
  pool.steps = Seconds(4), pool.reading = Seconds(1), pool.sending = Seconds(2);
  pool.terms = {{"attention", Seconds(1)}, {"experts", Seconds(3)}, {"hidden exchange", Seconds(9)}};
  CHECK(bound_of(pool).name == "experts");
  CHECK(bound_of(pool).share == Approx(0.75));
  pool.sending = Seconds(5);
  CHECK(bound_of(pool).name == "KV transfer");
  CHECK_FALSE(bound_of(pool).share.has_value());
  pool.reading = Seconds(6);
  CHECK(bound_of(pool).name == "KV reads");
  CHECK(pool.term("host") == Seconds());
}

}  // namespace
}  // namespace dculab::sim
