// The GPU kernels, run on the host, against the CPU engine, which is held to transformers by llama_golden_test.cpp.
#include <cmath>

#include "engine/checkpoint/random_weights.hpp"
#include "model/plan_step.hpp"
#include "tests/engine/support/small_gpu_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::engine {
namespace {

// Half the distance between neighbouring numbers, relative.
constexpr double unit_roundoff(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16:
      return 0x1p-11;
    case Dtype::bf16:
      return 0x1p-9;
    case Dtype::fp8_e4m3:
      return 0x1p-4;
    case Dtype::fp8_e5m2:
      return 0x1p-3;
    default:
      return 0x1p-24;
  }
}

// How far logits may lie from the CPU engine's with an F32 cache, as a share of the largest: one roundoff for every
// tensor of a layer that the GPU rounds. RMSNorm divides by the length of the residual, so that relative errors add up
// from layer to layer and do not grow otherwise. F32 sums in another order are below what one rounding to F16 costs.
double logits_tolerance(const ModelShape& shape, Dtype activation, Dtype kv) {
  const double layers = shape.num_layers();
  const double f16 = unit_roundoff(Dtype::f16);
  double total = 2 * layers * unit_roundoff(kv);  // K and V
  if (activation == Dtype::f16)
    total += (8 * layers + 1) * f16;  // two norms, QKV, attention, o_proj, gate and up, SiLU, down_proj; the last norm
  else if (kv != Dtype::bf16)
    total += layers * f16;  // the query, which decode attention multiplies in pairs of halves
  return total + f16;
}

void check_against_cpu(const ModelWeights& weights, StepperOptions options, int wave_size) {
  Stepper cpu(weights, {.block_size = options.block_size});
  Stepper gpu(host_gpu(wave_size), weights, options);
  const double difference = relative_difference(ragged_steps(gpu), ragged_steps(cpu));
  INFO(name(weights.shape.dtype) << " weights, " << name(options.activation_dtype) << " activations, "
                                 << name(options.kv_dtype) << " KV, blocks of " << options.block_size << ", waves of "
                                 << wave_size << ", group size " << weights.shape.heads().group_size());
  CHECK(difference <= logits_tolerance(weights.shape, options.activation_dtype, options.kv_dtype));
}

}  // namespace

TEST_CASE("logits of MHA, GQA and MQA are the CPU engine's, in every format of weights, activations and KV", "[gpu]") {
  std::size_t turn = 0;
  for (const int num_kv_heads : {8, 2, 1})
    for (const Dtype weights : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
      if (thinned_out(turn++, 4)) continue;  // one of each number of KV heads, one of each dtype
      const ModelWeights random = random_weights(small_model(num_kv_heads, weights), 1);
      const int wave_size = weights == Dtype::f16 ? 32 : 64;
      check_against_cpu(random, {.block_size = 16, .kv_dtype = Dtype::bf16}, wave_size);
      check_against_cpu(random, {.block_size = 1, .kv_dtype = Dtype::f16}, wave_size);
      check_against_cpu(random, {.block_size = 64, .kv_dtype = Dtype::f16, .activation_dtype = Dtype::f16}, wave_size);
      check_against_cpu(random, {.block_size = 8, .kv_dtype = Dtype::fp8_e4m3}, wave_size);
    }
  const ModelWeights random = random_weights(small_model(2), 2);
  check_against_cpu(random, {.kv_dtype = Dtype::bf16, .activation_dtype = Dtype::f16}, 64);
  check_against_cpu(random, {.kv_dtype = Dtype::fp8_e5m2, .activation_dtype = Dtype::f16}, 64);
}

TEST_CASE("logits of tied heads and scaled rotary embeddings are the CPU engine's", "[gpu]") {
  ModelShape tied = small_model(2);
  tied.tie_word_embeddings = true;
  ModelShape linear = small_model(2);
  linear.kinds[0].gqa().position.rope_scaling = {.kind = RopeScalingKind::linear, .factor = 4};
  ModelShape llama3 = small_model(2);
  llama3.kinds[0].gqa().position.rope_scaling = {
      .kind = RopeScalingKind::llama3, .factor = 8, .original_max_position_embeddings = 16};
  for (const ModelShape& shape : {tied, linear, llama3})
    check_against_cpu(random_weights(shape, 3), {.kv_dtype = Dtype::bf16}, 64);
}

TEST_CASE("long contexts in one pass and in partitions are the CPU engine's", "[gpu]") {
  const ModelWeights weights = random_weights(small_model(2), 4);
  const std::vector<Feed> prompts{{0, Phase::prefill, tokens_from(1, 100)}, {1, Phase::prefill, tokens_from(2, 20)}};
  const std::vector<Feed> next{{0, Phase::decode, {9}}, {1, Phase::decode, {10}}};
  Stepper cpu(weights);
  static_cast<void>(cpu.step(prompts));
  const std::vector<Logits> expected = cpu.step(next);
  for (const int partition_tokens : {0, 16, 40, 512}) {
    INFO(partition_tokens);
    Stepper gpu(host_gpu(), weights, {.kv_dtype = Dtype::bf16, .partition_tokens = partition_tokens});
    static_cast<void>(gpu.step(prompts));
    CHECK(relative_difference(gpu.step(next), expected) <= logits_tolerance(weights.shape, Dtype::f32, Dtype::bf16));
  }
}

TEST_CASE("prompts in chunks, decodes beside prefills and sequences alone give what one step gives", "[gpu]") {
  const ModelWeights weights = random_weights(small_model(2), 5);
  const StepperOptions options{.block_size = 8, .kv_dtype = Dtype::bf16};
  const double most = logits_tolerance(weights.shape, Dtype::f32, Dtype::bf16);
  const std::vector<TokenId> prompt = tokens_from(3, 21);
  Stepper stepper(host_gpu(), weights, options);
  const std::vector<Logits> whole = stepper.step({{0, Phase::prefill, prompt}});
  SequenceId sequence = 1;
  for (const int chunk : {1, 7, 16}) {
    INFO("chunks of " << chunk);
    std::vector<Logits> last;
    for (auto begin = prompt.begin(); begin != prompt.end();) {
      const auto end = begin + std::min<std::ptrdiff_t>(chunk, prompt.end() - begin);
      last = stepper.step({{sequence, Phase::prefill, {begin, end}}});
      begin = end;
    }
    CHECK(relative_difference(last, whole) <= most);
    ++sequence;
  }
  // A decode and a prefill in one step, then each in its own.
  const std::vector<Logits> mixed =
      stepper.step({{4, Phase::prefill, prompt}, {0, Phase::decode, {50}}, {1, Phase::decode, {50}}});
  CHECK(relative_difference({mixed[0]}, whole) <= most);
  CHECK(relative_difference({mixed[1]}, {mixed[2]}) <= most);
  CHECK(relative_difference(stepper.step({{2, Phase::decode, {50}}}), {mixed[1]}) <= most);
}

TEST_CASE("only sequences that need logits have a row on the GPU, in order", "[gpu]") {
  const ModelWeights weights = random_weights(small_model(2), 9);
  const std::vector<Feed> feeds{{0, Phase::prefill, {3, 4, 5}}, {1, Phase::prefill, {6, 7}}, {2, Phase::prefill, {8}}};
  Stepper all(host_gpu(), weights, {.kv_dtype = Dtype::f16});
  const std::vector<Logits> rows = all.step(feeds);
  Stepper some(host_gpu(), weights, {.kv_dtype = Dtype::f16});
  Batch batch = some.plan(feeds).batch;
  batch.sequences[0].num_logits = 0;
  some.executor().run(plan_step(weights.shape, some.engine(), std::move(batch)));
  for (const int row : {0, 1}) {
    const auto logits = some.executor().logits(row);
    CHECK(relative_difference({{logits.begin(), logits.end()}}, {rows[static_cast<std::size_t>(row) + 1]}) <= 0x1p-20);
  }
}

}  // namespace dculab::engine
