// Runs behind published figures: counted steps and hand-computed times.
#include "sim/study/measured_run.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "lower/flash_attention/kernels.hpp"
#include "lower/gemm/kernels.hpp"
#include "model/kv/kv_bytes.hpp"
#include "model/plan_step.hpp"
#include "sim/calibration/floor_check.hpp"
#include "sim/study/serving_run.hpp"
#include "tests/sim/lowered.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim {
namespace {

Server a100_server(const ModelShape& model, int max_num_batched_tokens) {
  Server server{.machine = test::a100_like(), .model = model, .options = {}};
  server.options.max_num_batched_tokens = max_num_batched_tokens;
  return server;
}

double steps_in(const MeasuredRun& measured_run) {
  double steps = 0;
  for (const RunStep& step : measured_run.steps) steps += step.times;
  return steps;
}

double tokens_in(const MeasuredRun& measured_run) {
  double tokens = 0;
  for (const RunStep& step : measured_run.steps)
    tokens += step.times * static_cast<double>(step.plan.batch.num_tokens());
  return tokens;
}

TEST_CASE("two prompts of 100 tokens in steps of 128 with 3 outputs take 4 steps") {
  // 100 + 28 prefill | 1 decode + 72 prefill | 2 decodes | 1 decode
  const MeasuredRun measured_run = served_requests(a100_server(test::tiny_llama(), 128), 2, 100, 3);
  REQUIRE(measured_run.steps.size() == 4);
  CHECK(measured_run.steps[0].plan.batch.num_tokens() == 128);
  CHECK(measured_run.steps[1].plan.batch.num_tokens() == 73);
  CHECK(measured_run.steps[2].plan.batch.num_tokens() == 2);
  CHECK(measured_run.steps[3].plan.batch.num_tokens() == 1);
}

TEST_CASE("a schedule's steps are all counted, however few are kept") {
  const MeasuredRun measured_run = served_requests(a100_server(test::tiny_llama(), 2048), 16, 512, 400);
  // 8192 prompt tokens are more than four steps carry beside the first decodes; then 399 more tokens for the last.
  CHECK(steps_in(measured_run) == 5 + 399);
  CHECK(measured_run.steps.size() <= 24);
}

TEST_CASE("requests that do not fit together take turns") {
  Server server = a100_server(test::tiny_llama(), 2048);
  const MeasuredRun together = served_requests(server, 2, 1000, 20);
  // Room for one sequence of 1020 tokens: 64 blocks and the watermark, besides weights and activations.
  const Bytes kv = kv_bytes_per_token(server.model, Dtype::f16) * (16 * 66);
  const Bytes rest = weight_footprint(server.model, server.options.weights);
  server.options.max_num_seqs = 2;
  server.options.max_num_batched_tokens = 1024;
  const double activations = 2.0 * 1024 * (3 * 256 + 3 * 256 + 3 * 768) + 4.0 * 2 * 2048;
  server.machine.memory.back().size = (rest + kv + Bytes(activations)) / server.options.gpu_memory_utilization;
  const MeasuredRun in_turn = served_requests(server, 2, 1000, 20);
  CHECK(steps_in(together) == 20);
  CHECK(steps_in(in_turn) == 40);
}

TEST_CASE("a request that cannot be served is refused with the reason") {
  CHECK_THROWS_AS(served_requests(a100_server(test::tiny_llama(), 2048), 1, 2000, 100), InputError);
  Server small = a100_server(test::tiny_llama(), 2048);
  small.machine.memory.back().size = Bytes(1e6);
  CHECK_THROWS_WITH(served_requests(small, 1, 100, 10),
                    ContainsSubstring("leaves no room for a KV block in the memory of 1 x a100-like"));
}

TEST_CASE("a prompt is cut into chunks, and only the last computes logits") {
  const MeasuredRun measured_run = prefill(a100_server(test::llama_3_8b(), 512), 1100);
  REQUIRE(measured_run.steps.size() == 3);
  CHECK(tokens_in(measured_run) == 1100);
  CHECK(measured_run.amount == 1100);
  CHECK(measured_run.steps[1].plan.batch.sequences.front().context_tokens() == 1024);
  CHECK(measured_run.steps[1].plan.ops.back().name != "lm_head");
  CHECK(measured_run.steps[2].plan.ops.back().name == "lm_head");
}

TEST_CASE("eight middles integrate a growing context") {
  const Server server = a100_server(test::llama_3_8b(), 2048);
  const MeasuredRun sampled = decode(server, 4, 1, 2048);
  CHECK(steps_in(sampled) == 2048);
  CHECK(sampled.amount == 4 * 2048);
  Seconds every_step;
  for (int context = 1; context <= 2048; ++context)
    every_step += price_run(server.machine, decode(server, 4, context, context));
  CHECK(price_run(server.machine, sampled) / every_step == Approx(1).epsilon(0.01));
}

TEST_CASE("a rate and a time are two views of one figure") {
  MeasuredRun measured_run;
  CHECK(measured_run.figure(Seconds(2)) == 2);
  measured_run.amount = 100;
  CHECK(measured_run.figure(Seconds(2)) == 50);
  CHECK(measured_run.time(50).value() == Approx(2));
}

TEST_CASE("a kernel alone carries no host time") {
  Machine machine = test::a100_like();
  machine.overheads.host_per_step = Seconds(1);
  const Server server = a100_server(test::llama_2_7b(), 2048);
  const StepPlan plan = plan_step(server.model, server.options, uniform_batch(Phase::decode, 1, 128));
  const Op down_proj = plan.ops[plan.ops.size() - 3];
  REQUIRE(down_proj.name == "down_proj");
  const MeasuredRun measured_run = kernel_run({.ops = {down_proj}, .batch = plan.batch, .attention_split = {}});
  CHECK(price_run(machine, measured_run) == test::price_op(machine, down_proj, down_proj.unique_bytes()).seconds);
  // 2 B x 4096 x 11008 = 90.2 MB, of which L1 (13.8 MiB of all units) and L2 (40 MiB) can hold 55.8 MB.
  const double beyond = 2.0 * 4096 * 11008 - 108 * 128 * 1024.0 - 40 * 1024.0 * 1024;
  CHECK(run_floor(machine, measured_run).value() == Approx(beyond / 2039e9));
}

TEST_CASE("the bound names the host and the exchange when they dominate") {
  Server server = a100_server(test::tiny_llama(), 2048);
  server.machine.overheads.host_per_step = Seconds(1);
  CHECK(run_bound(server.machine, decode(server, 1, 10, 10)) == "host");
  server.machine.overheads.host_per_step = Seconds{};
  server.machine.peer_link = BytesPerSecond(1e3);
  server.devices = 2;
  CHECK(run_bound(server.machine, decode(server, 1, 10, 10)) == "exchange");
}

Machine with_libraries() {
  Machine machine = test::a100_like();
  machine.stack.kernels.matmul = {&lower::gemm::kCublas};
  machine.stack.kernels.attention_prefill =
      machine.stack.kernels.attention_decode = {&lower::flash_attention::kFlashAttention2};
  return machine;
}

TEST_CASE("the bound of a kernel counts what comes with it: a second kernel") {
  const Machine machine = with_libraries();
  const StepPlan plan = plan_step(test::llama_3_8b(), EngineOptions{}, uniform_batch(Phase::decode, 64, 4096));
  const auto measured_run_of = [&plan](std::initializer_list<OpKind> kinds) {
    StepPlan kernels{.ops = {}, .batch = plan.batch, .attention_split = {}};
    for (const OpKind kind : kinds) kernels.ops.push_back(*std::ranges::find(plan.ops, kind, &Op::kind));
    return kernel_run(kernels);
  };
  CHECK(run_bound(machine, measured_run_of({OpKind::attention_decode})) == "DRAM");
  // A norm of 64 rows is over before the attention behind it has read its KV.
  CHECK(run_bound(machine, measured_run_of({OpKind::rms_norm})) != "DRAM");
  CHECK(run_bound(machine, measured_run_of({OpKind::rms_norm, OpKind::attention_decode})) == "DRAM");
}

TEST_CASE("in turn with other kernels, weights that a cache could hold come from DRAM") {
  const Machine machine = test::a100_like();
  const ModelShape model = test::llama_3_8b();
  const StepPlan plan = plan_step(model, EngineOptions{}, uniform_batch(Phase::decode, 1, 100));
  const auto projection =
      std::find_if(plan.ops.begin(), plan.ops.end(), [](const Op& op) { return op.name == "o_proj"; });
  MeasuredRun measured_run = kernel_run({.ops = {*projection}, .batch = {}, .attention_split = {}});
  const Seconds in_a_loop = price_run(machine, measured_run);
  measured_run.timed = Timed::cold_kernel;
  const double bytes = 2.0 * 4096 * 4096;  // of 40 MiB of L2
  CHECK(price_run(machine, measured_run).value() > bytes / 2039e9);
  CHECK(price_run(machine, measured_run) > 1.2 * in_a_loop);
}

TEST_CASE("kernels of one run follow each other") {
  const Machine machine = test::a100_like();
  const StepPlan plan = plan_step(test::llama_3_8b(), EngineOptions{}, uniform_batch(Phase::decode, 8, 4096));
  MeasuredRun both = kernel_run({.ops = {plan.ops[1]}, .batch = {}, .attention_split = {}});
  const Seconds alone = price_run(machine, both);
  both.steps.front().plan.ops.push_back(plan.ops[1]);
  CHECK(price_run(machine, both) >= 2 * alone);  // and leave each other less cache
}

TEST_CASE("a ratio of two times is as sure as the priors move both alike") {
  const Machine machine = with_libraries();
  const MeasuredRun four = decode(a100_server(test::llama_3_8b(), 2048), 4, 100, 100);
  const MeasuredRun five = decode(a100_server(test::llama_3_8b(), 2048), 5, 100, 100);
  const MeasuredRun prefill =
      kernel_run(plan_step(test::llama_3_8b(), EngineOptions{}, uniform_batch(Phase::prefill, 1, 2048)));
  CHECK(ratio_factor({machine, four}, {machine, four}) == 1);
  CHECK(*ratio_factor({machine, four}, {machine, five}) < 1.05);
  CHECK(*ratio_factor({machine, four}, {machine, prefill}) > 1.2);  // one waits for DRAM, the other computes
  Machine other = machine;
  other.name = "another";
  CHECK_FALSE(ratio_factor({machine, four}, {other, four}));
  other = machine;
  other.calibration.emplace();
  CHECK_FALSE(ratio_factor({machine, four}, {other, four}));
}

TEST_CASE("weights of a format that is only alike have their own bytes, in the layers alone") {
  Server server = a100_server(test::llama_3_8b(), 2048);
  const MeasuredRun as_is = decode(server, 1, 100, 100);
  server.layer_weight_scale = 0.5;
  const MeasuredRun scaled = decode(server, 1, 100, 100);
  const auto weights = [](const MeasuredRun& measured_run, Stage stage) {
    Bytes total;
    for (const Op& op : measured_run.steps.front().plan.ops)
      for (const Operand& operand : op.operands())
        if (op.kind == OpKind::matmul && op.stage == stage && operand.role == OperandRole::weight)
          total += operand.unique;
    return total;
  };
  CHECK(weights(scaled, Stage::layer) == 0.5 * weights(as_is, Stage::layer));
  CHECK(weights(scaled, Stage::after_layers) == weights(as_is, Stage::after_layers));
}

}  // namespace
}  // namespace dculab::sim
