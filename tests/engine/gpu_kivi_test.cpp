// KIVI caches with the GPU kernels, run on the host: logits are the CPU engine's, in steps of any kind.
#include <algorithm>
#include <cmath>
#include <span>

#include "engine/checkpoint/random_weights.hpp"
#include "tests/engine/support/small_gpu_model.hpp"

namespace dculab::engine {
namespace {

// Both engines compute K and V in F32, in other orders. One value of some thousands rounds to another half, and of
// these one of some hundreds to another code, which is a step away: of the channel or token's range 1 / 15, or 1 / 3.
double kivi_tolerance(Dtype dtype) { return (dtype == Dtype::kivi4 ? 1 : 5) * 0x1p-9; }

// Prompts in chunks that end within groups, decodes beside prefills, contexts beyond the residual of 128 tokens.
std::vector<Logits> mixed_steps(Stepper& stepper) {
  std::vector<Logits> all;
  const auto add = [&](const std::vector<Feed>& feeds) {
    const std::vector<Logits> rows = stepper.step(feeds);
    all.insert(all.end(), rows.begin(), rows.end());
  };
  add({{0, Phase::prefill, tokens_from(3, 100)}, {1, Phase::prefill, tokens_from(5, 28)}});
  add({{0, Phase::prefill, tokens_from(40, 55)}, {1, Phase::decode, {7}}});
  add({{2, Phase::prefill, tokens_from(9, 1)}, {0, Phase::prefill, tokens_from(11, 30)}, {1, Phase::decode, {8}}});
  for (TokenId token = 20; token < 30; ++token)
    add({{1, Phase::decode, {token}}, {0, Phase::decode, {token + 1}}, {2, Phase::decode, {token + 2}}});
  return all;
}

// Of the first blocks of sequence 0, which hold whole groups.
double share_of_other_bytes(Stepper& a, Stepper& b, int num_blocks) {
  const auto bytes_of = [&](Stepper& stepper) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(num_blocks) * stepper.executor().bytes_per_block());
    stepper.executor().read_blocks(std::span(stepper.blocks(0)).first(static_cast<std::size_t>(num_blocks)), bytes);
    return bytes;
  };
  const std::vector<std::byte> one = bytes_of(a), other = bytes_of(b);
  REQUIRE(one.size() == other.size());
  int differing = 0;
  for (std::size_t i = 0; i < one.size(); ++i) differing += one[i] != other[i] ? 1 : 0;
  return static_cast<double>(differing) / static_cast<double>(one.size());
}

}  // namespace

TEST_CASE("KIVI on --device host-gpu: logits are those of the CPU engine", "[gpu]") {
  const auto& [dtype, kv_heads, block_size, partition_tokens, wave_size] =
      GENERATE(table<Dtype, int, int, int, int>({{Dtype::kivi4, 2, 16, 512, 64},
                                                 {Dtype::kivi2, 2, 4, 64, 64},
                                                 {Dtype::kivi4, 8, 64, 32, 32},
                                                 {Dtype::kivi2, 1, 32, 512, 32}}));
  CAPTURE(name(dtype), kv_heads, block_size, partition_tokens, wave_size);
  const ModelWeights weights = random_weights(small_model(kv_heads), 7);
  StepperOptions options{.block_size = block_size, .kv_dtype = dtype, .num_tokens = 512};
  Stepper cpu(weights, options);
  options.partition_tokens = partition_tokens;
  Stepper gpu(host_gpu(wave_size), weights, options);
  CHECK(relative_difference(mixed_steps(gpu), mixed_steps(cpu)) <= kivi_tolerance(dtype));
  CHECK(share_of_other_bytes(gpu, cpu, 192 / block_size) <= 0.005);
}

TEST_CASE("KIVI on --device host-gpu: F16 activations, ALiBi and windows give the CPU's logits", "[gpu]") {
  ModelShape alibi = small_model(2), window = small_model(4);
  alibi.kinds[0].gqa().position.kind = PositionKind::alibi;
  window.kinds[0].gqa().sliding_window = 50;
  for (const ModelShape& shape : {small_model(2), alibi, window}) {
    const ModelWeights weights = random_weights(shape, 8);
    StepperOptions options{.kv_dtype = Dtype::kivi4, .num_tokens = 512};
    Stepper cpu(weights, options);
    options.activation_dtype = Dtype::f16;
    Stepper gpu(host_gpu(), weights, options);
    // Activations are halves from op to op: so are the values that are rounded to codes.
    CHECK(relative_difference(mixed_steps(gpu), mixed_steps(cpu)) <= 16 * kivi_tolerance(Dtype::kivi4));
  }
}

TEST_CASE("KIVI on --device host-gpu: copied blocks hold what was copied, residuals are no part of them", "[gpu]") {
  const ModelWeights weights = random_weights(small_model(2), 9);
  for (const Dtype dtype : {Dtype::kivi4, Dtype::kivi2}) {
    Stepper stepper(host_gpu(), weights, {.block_size = 16, .kv_dtype = dtype, .num_tokens = 256});
    Stepper cpu(weights, {.block_size = 16, .kv_dtype = dtype, .num_tokens = 256});
    static_cast<void>(stepper.step({{0, Phase::prefill, tokens_from(1, 40)}}));
    ModelExecutor& executor = stepper.executor();
    REQUIRE(executor.bytes_per_block() == cpu.executor().bytes_per_block());
    const std::vector<BlockId> source{stepper.blocks(0)[0], stepper.blocks(0)[1]}, copy{60, 61};
    executor.copy_blocks(std::vector<BlockCopy>{{source[0], copy[0]}, {source[1], copy[1]}});
    std::vector<std::byte> expected(2 * executor.bytes_per_block()), copied(expected.size());
    executor.read_blocks(source, expected);
    executor.read_blocks(copy, copied);
    CHECK(copied == expected);
    CHECK_THROWS_WITH(executor.move_slots(std::vector<SlotMove>{{0, 1}}), ContainsSubstring("no slots of single"));
  }
}

TEST_CASE("KIVI on --device host-gpu: a sequence that was not seen is refused, or made up for measuring", "[gpu]") {
  const ModelWeights weights = random_weights(small_model(2), 10);
  Stepper stepper(host_gpu(), weights, {.kv_dtype = Dtype::kivi2, .num_tokens = 512});
  stepper.rewind(0, 150);
  const std::vector<Feed> next{{0, Phase::decode, {4}}};
  CHECK_THROWS_WITH(stepper.step(next), ContainsSubstring("has not seen from it"));
  stepper.rewind(0, 150);
  stepper.executor().fill_kv_cache(1);
  const std::vector<Logits> rows = stepper.step(next);
  CHECK(std::ranges::all_of(rows.front(), [](float logit) { return std::isfinite(logit); }));
}

TEST_CASE("KIVI on a GPU needs heads that are multiples of 32", "[gpu]") {
  ModelShape shape = small_model(2);
  shape.kinds[0].gqa().heads.head_dim = 80;
  const ModelWeights weights = random_weights(shape, 11);
  CHECK_THROWS_WITH(Stepper(host_gpu(), weights, {.kv_dtype = Dtype::kivi4}),
                    ContainsSubstring("needs a head_dim that is a multiple of 32, not 80"));
}

}  // namespace dculab::engine
