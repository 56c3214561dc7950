// What the GPU executor asks of its device, and what it refuses. Its numbers: gpu_logits_test.cpp.
#include "engine/executors/gpu_executor.hpp"

#include <algorithm>
#include <numeric>

#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "engine/executors/open_executor.hpp"
#include "lower/dculab_gpu/geometry.hpp"
#include "lower/dculab_gpu/gptq_plan.hpp"
#include "lower/kv/kv_memory.hpp"
#include "tests/engine/support/counting_device.hpp"
#include "tests/engine/support/golden_model.hpp"
#include "tests/engine/support/small_gpu_model.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {

TEST_CASE("blocks are copied in order: a source that is overwritten later, chains, swaps, hundreds of pairs", "[gpu]") {
  const auto device = host_gpu();
  constexpr int kBlocks = 700;
  GpuKvStorage storage(device, small_model(1), {.num_blocks = kBlocks, .block_size = 1, .dtype = Dtype::f16});
  constexpr std::size_t kValues = 32;  // of a block's K
  std::vector<std::uint16_t> expected(kBlocks * kValues);
  std::iota(expected.begin(), expected.end(), std::uint16_t{0});
  for (const int layer : {0, 1})
    for (void* pool : {storage.layer(layer).k, storage.layer(layer).v})
      device->upload(pool, expected.data(), expected.size() * 2);

  std::vector<BlockCopy> copies{{0, 1},   {1, 2},   {2, 3},                               // a chain: 3 is 0
                                {10, 11}, {12, 10},                                       // 11 is the old 10
                                {20, 22}, {21, 20}, {22, 21},                             // 20 and 21 change places
                                {30, 31}, {30, 32}, {33, 31}};                            // 31 is written twice
  for (BlockId block = 40; block < 340; ++block) copies.push_back({block, block + 330});  // more than a launch takes
  storage.copy_blocks(copies);
  for (const BlockCopy& copy : copies)
    std::copy_n(expected.begin() + copy.source * std::ptrdiff_t{kValues}, kValues,
                expected.begin() + copy.destination * std::ptrdiff_t{kValues});
  for (const int layer : {0, 1})
    for (const void* pool : {storage.layer(layer).k, storage.layer(layer).v}) {
      std::vector<std::uint16_t> copied(expected.size());
      device->download(copied.data(), pool, copied.size() * 2);
      CHECK(copied == expected);
    }
}

TEST_CASE("a sequence goes on from copied blocks on the GPU", "[gpu]") {
  const ModelWeights weights = random_weights(small_model(2), 6);
  Stepper stepper(host_gpu(), weights, {.block_size = 4, .kv_dtype = Dtype::f16});
  static_cast<void>(
      stepper.step({{0, Phase::prefill, tokens_from(1, 6)}, {1, Phase::prefill, std::vector<TokenId>(6, 2)}}));
  stepper.executor().copy_blocks(std::vector<BlockCopy>{{stepper.blocks(0)[0], stepper.blocks(1)[0]},
                                                        {stepper.blocks(0)[1], stepper.blocks(1)[1]}});
  const auto rows = stepper.step({{0, Phase::decode, {10}}, {1, Phase::decode, {10}}});
  CHECK(rows[0] == rows[1]);
}

TEST_CASE("weights are uploaded once, and a step allocates nothing on the device", "[gpu]") {
  for (const bool is_tied : {false, true}) {
    ModelShape shape = small_model(2, Dtype::f16);
    shape.tie_word_embeddings = is_tied;
    const auto device = std::make_shared<CountingDevice>(kernels::gpu::open_host_device({}));
    Stepper stepper(device, random_weights(shape, 7), {.kv_dtype = Dtype::f16});
    const double rope_table = 4.0 * shape.max_position_embeddings * shape.kinds[0].gqa().heads.head_dim;
    CHECK(static_cast<double>(device->counts().uploads) ==
          weight_footprint(shape, {Dtype::f16, 0}).value() + rope_table);

    const DeviceCounts made = device->counts();
    static_cast<void>(ragged_steps(stepper));
    stepper.executor().copy_blocks(std::vector<BlockCopy>{{0, 1}});
    CHECK(device->counts().allocations == made.allocations);
    // Ids, positions and slots of 30 + 3 + 3 tokens; of each phase's 3 sequences 4 offsets and 3 lengths, and block
    // tables of [3, 2]; a pair of blocks.
    CHECK(device->counts().uploads - made.uploads == 36 * (4 + 4 + 8) + 3 * (4 * 4 + 3 * 4 + 3 * 2 * 4) + 2 * 4);
  }
}

TEST_CASE("critical blocks take what is counted with their first step, and nothing later", "[gpu]") {
  const auto device = std::make_shared<CountingDevice>(kernels::gpu::open_host_device({}));
  const ModelShape shape = small_model(2);
  Stepper stepper(device, random_weights(shape, 9),
                  {.block_size = 4,
                   .kv_dtype = Dtype::f16,
                   .retention = {.policy = RetentionPolicy::critical_blocks, .kv_budget = 0.5}});
  const DeviceCounts made = device->counts();
  static_cast<void>(stepper.step({{0, Phase::prefill, tokens_from(3, 9)}}));
  const DeviceCounts first = device->counts();
  const double of_batch = 4 * (2 * (8 + 1) + 8);  // new tokens of each phase; budgets
  CHECK(static_cast<double>(first.allocated - made.allocated) ==
        8 * lower::kv_policy_memory(lower::DeviceKind::gpu, shape, stepper.engine()).value() + of_batch);
  static_cast<void>(stepper.step({{1, Phase::prefill, tokens_from(7, 100)}, {0, Phase::decode, {5}}}));
  static_cast<void>(stepper.step({{0, Phase::decode, {6}}, {1, Phase::decode, {40}}}));
  CHECK(device->counts().allocations == first.allocations);
}

TEST_CASE("sinks and heavy hitters take what is counted with each new sequence, and leave it to the next", "[gpu]") {
  for (const KvRetention& retention :
       {KvRetention{.policy = RetentionPolicy::sinks, .sink_tokens = 3, .window_tokens = 8},
        KvRetention{.policy = RetentionPolicy::heavy_hitters, .window_tokens = 8, .heavy_hitter_tokens = 6}}) {
    INFO(name(retention.policy));
    const auto device = std::make_shared<CountingDevice>(kernels::gpu::open_host_device({}));
    const ModelShape shape = small_model(2);
    Stepper stepper(device, random_weights(shape, 9), {.kv_dtype = Dtype::f16, .retention = retention});
    static_cast<void>(stepper.step({{0, Phase::prefill, tokens_from(3, 9)}}));
    const DeviceCounts first = device->counts();
    static_cast<void>(stepper.step({{1, Phase::prefill, tokens_from(7, 5)}, {0, Phase::decode, {5}}}));
    const DeviceCounts second = device->counts();
    CHECK(static_cast<double>(second.allocated - first.allocated) ==
          lower::kv_policy_memory(lower::DeviceKind::gpu, shape, stepper.engine()).value());
    stepper.executor().forget(0);
    static_cast<void>(stepper.step({{2, Phase::prefill, tokens_from(11, 6)}, {1, Phase::decode, {6}}}));
    CHECK(device->counts().allocations == second.allocations);
  }
}

TEST_CASE("ops are timed between marks that are made once, or not at all", "[gpu]") {
  const auto device = std::make_shared<CountingDevice>(kernels::gpu::open_host_device({}));
  const ModelWeights weights = random_weights(small_model(2), 8);
  Stepper stepper(device, weights, {.kv_dtype = Dtype::f16});
  const std::vector<Feed> feed{{0, Phase::prefill, tokens_from(1, 3)}};
  const StepPlan plan = stepper.plan(feed);
  // Embedding, norm and head once, everything else in both layers; a mark before each, and one after the last.
  const int marks = 3 + 2 * (static_cast<int>(plan.ops.size()) - 3) + 1;
  for (int step = 1; step <= 2; ++step) {
    const StepResult result = stepper.executor().run(plan);
    REQUIRE(result.op_durations.size() == plan.ops.size());
    Seconds sum;
    for (const Seconds duration : result.op_durations) {
      CHECK(duration > Seconds(0));
      sum += duration;
    }
    CHECK(sum <= result.duration);
    CHECK(device->counts().marks_made == marks);
    CHECK(device->counts().marks_recorded == step * marks);
  }
  stepper.executor().set_op_timing(OpTiming::off);
  const StepResult untimed = stepper.executor().run(plan);
  CHECK(untimed.op_durations.empty());
  CHECK(untimed.duration > Seconds(0));
  CHECK(device->counts().marks_recorded == 2 * marks);
}

TEST_CASE("what the GPU engine does not support is refused with the reason", "[gpu]") {
  const ModelWeights weights = random_weights(small_model(2), 10);
  const auto make = [&](const ModelWeights& model, StepperOptions options) { Stepper(host_gpu(), model, options); };
  for (const Dtype dtype : {Dtype::f32, Dtype::kvquant4})
    CHECK_THROWS_WITH(make(weights, {.kv_dtype = dtype}),
                      "kv_cache_dtype " + std::string(name(dtype)) +
                          " is not supported on the GPU; use f16, bf16, fp8_e4m3, fp8_e5m2, int8, kivi4 or kivi2");
  CHECK_THROWS_WITH(make(weights, {.kv_dtype = Dtype::f16, .activation_dtype = Dtype::bf16}),
                    "activations of bf16 are not supported on the GPU; use f16 or f32");
  ModelWeights mixed = weights;
  mixed.layers[1][WeightSlot::qkv_proj].weights[kK].dtype = Dtype::f16;
  CHECK_THROWS_WITH(make(mixed, {.kv_dtype = Dtype::f16}),
                    "the GPU engine needs Q, K and V (and gate and up) in one format");

  CHECK_THROWS_WITH(make(load_weights(kGoldenFolder / "gqa"), {.kv_dtype = Dtype::f16}),
                    "head_dim 16 is not supported on the GPU; use 32, 64, 80, 96, 128 or 256");

  const char* known = " is not a device; use cpu, host-gpu, hip:0 or cuda:0";
  for (const std::string text : {"", "gpu", "hip", "hip:", "hip:x", "hip:-1", "hip:0 ", "cuda:99999999999", "HIP:0"})
    CHECK_THROWS_WITH(parse_device(text), "'" + text + "'" + known);
  CHECK(parse_device("cuda:3").index == 3);
  CHECK(parse_device("host-gpu").kind == DeviceKind::host_gpu);
}

TEST_CASE("steps beyond the limits and plans for another model are refused by the GPU engine", "[gpu]") {
  Stepper stepper(host_gpu(), random_weights(small_model(2), 11),
                  {.kv_dtype = Dtype::f16, .limits = {.max_num_batched_tokens = 6, .max_num_seqs = 2}});
  const char* too_large = "plan: the batch is larger than the executor was made for";
  CHECK_THROWS_WITH(stepper.step({{0, Phase::prefill, tokens_from(1, 7)}}), too_large);
  CHECK_THROWS_WITH(stepper.step({{1, Phase::prefill, {1}}, {2, Phase::prefill, {1}}, {3, Phase::prefill, {1}}}),
                    too_large);
  const StepPlan good = stepper.plan({{4, Phase::prefill, tokens_from(1, 6)}});
  const auto refused = [&](auto change, const char* message) {
    StepPlan plan = good;
    change(plan);
    CHECK_THROWS_WITH(stepper.executor().run(plan), message);
  };
  const auto op = [](StepPlan& plan, std::string_view name) -> Op& {
    return *std::find_if(plan.ops.begin(), plan.ops.end(), [&](const Op& each) { return each.name == name; });
  };
  refused([&](StepPlan& plan) { op(plan, "qkv_proj").n += 1; },
          "plan: op 'qkv_proj' has another shape than its weights");
  refused([&](StepPlan& plan) { op(plan, "o_proj").weight_format.dtype = Dtype::f16; },
          "plan: op 'o_proj' is planned in another format than its weights");
  refused([&](StepPlan& plan) { op(plan, "o_proj").count = 3; }, "plan: op 'o_proj' is for another depth");
  refused([&](StepPlan& plan) { op(plan, "norm").weight = WeightSlot::qkv_proj; },
          "plan: op 'norm' is not a norm of this model");
  refused([&](StepPlan& plan) { op(plan, "o_proj").input = Buffer::qkv; },
          "plan: op 'o_proj' has another shape than its buffers");
  refused([&](StepPlan& plan) { op(plan, "silu_and_mul").n += 1; }, "plan: op 'silu_and_mul' has another shape");
  refused([&](StepPlan& plan) { op(plan, "attention_prefill").attention.block_size = 32; },
          "plan: op 'attention_prefill' is planned for another KV cache");
  refused([&](StepPlan& plan) { plan.batch.block_tables[0].assign(17, 0); },
          "plan: a block table is longer than any sequence can be");
  refused([&](StepPlan& plan) { plan.batch.token_ids[2] = 96; },
          "token id 96 is outside the model's vocabulary of 96; does the tokenizer belong to this model?");
  CHECK_NOTHROW(stepper.executor().run(good));
}

}  // namespace dculab::engine
