// A run of equal requests in closed form: what limits the batch, and the laws its figures obey.
#include "sim/study/offline_run.hpp"

#include "model/plan_step.hpp"
#include "sim/memory/capacity.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

EngineOptions int4_weights() {
  EngineOptions options;
  options.weights = {Dtype::int4, 128};
  return options;
}

TEST_CASE("the batch is what requests, max_num_seqs and memory leave") {
  const Machine machine = mi50_like();
  const ModelShape model = llama_2_7b();
  EngineOptions options = int4_weights();
  CHECK(offline_run(machine, model, options, {4, 100, 100}).batch == 4);
  CHECK(offline_run(machine, model, options, {4, 100, 100}).limit == BatchLimit::requests);
  options.max_num_seqs = 3;
  CHECK(offline_run(machine, model, options, {4, 100, 100}).batch == 3);
  CHECK(offline_run(machine, model, options, {4, 100, 100}).limit == BatchLimit::max_num_seqs);
  options.max_num_seqs = 100'000;
  const OfflineRun full = offline_run(machine, model, options, {100'000, 1000, 1000});
  CHECK(full.batch == capacity(machine, model, options, 1500).max_sequences);
  CHECK(full.limit == BatchLimit::memory);
}

// Contexts of 1001 to 2000 tokens hold 4 blocks of 256 24 times, 5, 6 and 7 256 times each and 8 208 times; their mean
// of 1500 tokens would hold 6.
TEST_CASE("memory is counted in whole blocks, half a block of each sequence is free on average") {
  const Machine machine = mi50_like();
  EngineOptions options = int4_weights();
  options.max_num_seqs = 100'000;
  options.block_size = 256;
  const auto blocks = static_cast<double>(capacity(machine, llama_2_7b(), options, 1).num_blocks);
  const OfflineRun full = offline_run(machine, llama_2_7b(), options, {100'000, 1000, 1000});
  CHECK(full.batch == static_cast<int>(blocks / 6.368));
  CHECK(full.batch < static_cast<int>(blocks / 6));
}

TEST_CASE("a model that fills the memory serves nothing") {
  Machine machine = mi50_like();
  machine.memory.back().size = 4 * kGiB;
  const OfflineRun run = offline_run(machine, llama_2_7b(), EngineOptions{}, {1, 100, 100});
  CHECK(run.batch == 0);
  CHECK(run.limit == BatchLimit::memory);
  CHECK(run.measured_run.steps.empty());
}

TEST_CASE("one request alone takes its prefill and one decode step per token") {
  const Machine machine = mi50_like();
  const ModelShape model = llama_2_7b();
  const EngineOptions options = int4_weights();
  const OfflineRun run = offline_run(machine, model, options, {1, 64, 2});
  const Seconds prefill = price_step(machine, plan_step(model, options, uniform_batch(Phase::prefill, 1, 64))).seconds;
  const Seconds decode = price_step(machine, plan_step(model, options, uniform_batch(Phase::decode, 1, 66))).seconds;
  CHECK(run.total_time.value() == Approx((prefill + 2 * decode).value()));
  CHECK(run.latency_mean.value() == Approx(run.total_time.value()));
  CHECK(run.output_tokens_per_second == Approx(2 / run.total_time.value()));
  CHECK(run.tokens_per_second == Approx(66 / run.total_time.value()));
  CHECK(run.requests_per_second == Approx(1 / run.total_time.value()));
}

TEST_CASE("ten times the requests of a full batch take ten times as long, each as long as before") {
  EngineOptions options = int4_weights();
  options.max_num_seqs = 8;
  const OfflineRun one = offline_run(mi50_like(), llama_2_7b(), options, {8, 128, 64});
  const OfflineRun ten = offline_run(mi50_like(), llama_2_7b(), options, {80, 128, 64});
  CHECK(ten.total_time.value() == Approx(10 * one.total_time.value()));
  CHECK(ten.latency_mean.value() == Approx(one.latency_mean.value()));
  CHECK(ten.output_tokens_per_second == Approx(one.output_tokens_per_second));
}

TEST_CASE("walking the longest sequence's blocks costs time, narrower KV and fewer KV heads save it") {
  const Machine machine = mi50_like();
  EngineOptions options = int4_weights();
  OfflineRequests work{32, 512, 1024};
  const double own = offline_run(machine, llama_2_7b(), options, work).total_time.value();
  work.walked = WalkedBlocks::of_longest;
  CHECK(offline_run(machine, llama_2_7b(), options, work).total_time.value() > own);
  work.walked = WalkedBlocks::own;
  CHECK(offline_run(machine, with_kv_heads(llama_2_7b(), 8), options, work).total_time.value() < own);
  options.kv_cache_dtype = Dtype::int8;
  CHECK(offline_run(machine, llama_2_7b(), options, work).total_time.value() < own);
}

TEST_CASE("shares add up to the time of the run") {
  const OfflineRun run = offline_run(mi50_like(), llama_2_7b(), int4_weights(), {16, 200, 200});
  Seconds total;
  for (const auto& [cause, time] : run_shares(mi50_like(), run.measured_run)) total += time;
  CHECK(total.value() == Approx(run.total_time.value()));
}

}  // namespace
}  // namespace dculab::sim::test
