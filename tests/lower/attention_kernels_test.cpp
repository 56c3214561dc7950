// What single attention kernels of other programs are known for.
#include "lower/dculab_gpu/kernels.hpp"
#include "lower/flash_attention/kernels.hpp"
#include "lower/hygon/kernels.hpp"
#include "lower/llama_cpp/kernels.hpp"
#include "lower/lower.hpp"
#include "lower/sglang/kernels.hpp"
#include "lower/vllm/kernels.hpp"
#include "tests/lower/kernel_cases.hpp"
#include "tests/support/catch.hpp"

namespace dculab::lower::test {
namespace {

TEST_CASE("FlashAttention splits until the machine is full") {
  using flash_attention::flash_splits;
  CHECK(flash_splits(200, 216, 64) == 1);
  CHECK(flash_splits(1, 216, 8) == 8);     // 7 would leave one empty; 8 is the most there are pieces for
  CHECK(flash_splits(100, 216, 64) == 2);  // 200 of 216 slots
}

TEST_CASE("on Hopper FlashAttention lets splits stay empty, and never splits four pieces") {
  using flash_attention::EmptySplits;
  using flash_attention::flash_splits;
  CHECK(flash_splits(1, 132, 4, EmptySplits::allowed) == 1);
  CHECK(flash_splits(1, 132, 8, EmptySplits::allowed) == 7);     // 0.875 of the best
  CHECK(flash_splits(8, 132, 128, EmptySplits::allowed) == 15);  // 120 of 132; the best is 33: two whole rounds
  CHECK(flash_splits(106, 132, 128, EmptySplits::allowed) == 1);
}

TEST_CASE("FlashAttention's prefill has a workgroup for each query head, its decode for each group") {
  const AttentionKernel& flash = flash_attention::kFlashAttention2;
  CHECK(tile_of(flash, OpKind::attention_prefill, step_of(Phase::prefill, 16, 512), a100_like()).query_heads == 1);
  CHECK(tile_of(flash, OpKind::attention_decode, step_of(Phase::decode, 16, 512), a100_like()).query_heads == 4);
}

TEST_CASE("a paged kernel asks for each KV byte once a query head, and splits few sequences only") {
  const auto tile = [](int sequences) {
    return tile_of(vllm::kPagedAttention, OpKind::attention_decode, step_of(Phase::decode, sequences, 2048),
                   a100_like());
  };
  CHECK(tile(16).query_heads == 1);
  CHECK(tile(16).partition_tokens == 512);  // 16 x 32 heads
  CHECK(tile(17).partition_tokens == 0);
}

TEST_CASE("Triton's unified attention has 16 rows a program, and 16 segments of few sequences") {
  const auto decode = [](int sequences, int context) {
    return tile_of(vllm::kTritonUnified3d, OpKind::attention_decode, step_of(Phase::decode, sequences, context),
                   dcu("gfx928"));
  };
  CHECK(decode(1, 4096).partition_tokens == 256);
  CHECK(decode(1, 100).partition_tokens == 16);
  CHECK(decode(16, 4096).partition_tokens == 256);  // 16 x 8 KV heads
  CHECK(decode(17, 4096).partition_tokens == 0);
  const AttentionTile prefill =
      tile_of(vllm::kTritonUnified2d, OpKind::attention_prefill, step_of(Phase::prefill, 1, 512), dcu("gfx928"));
  CHECK(prefill.query_tokens == 4);  // of 4 heads each
  CHECK(prefill.query_heads == 4);
}

TEST_CASE("DTK's paged attention serves a group, in short partitions where few workgroups walk") {
  EngineOptions options;
  options.block_size = 64;
  const auto partition = [&options](int sequences, int context) {
    return tile_of(hygon::kPagedAttention, OpKind::attention_decode,
                   step_of(Phase::decode, sequences, context, options), dcu("gfx936"))
        .partition_tokens;
  };
  CHECK(partition(1, 8192) == 256);
  CHECK(partition(64, 8192) == 512);
}

TEST_CASE("DTK's older port of vLLM shares K and V among heads once there are many workgroups") {
  const auto heads = [](int sequences) {
    return tile_of(hygon::kReusingPagedAttention, OpKind::attention_decode, step_of(Phase::decode, sequences, 4096),
                   dcu("gfx906"))
        .query_heads;
  };
  CHECK(heads(1) == 1);   // 32 heads, 8 partitions
  CHECK(heads(5) == 4);   // 160 x 8 = 1280
  CHECK(heads(64) == 2);  // whole contexts, 2048 walks
}

TEST_CASE("SGLang's Triton decode splits contexts to fill the device, into 16 parts at most") {
  const auto tokens = [](int sequences) {
    return tile_of(sglang::kTritonDecode, OpKind::attention_decode, step_of(Phase::decode, sequences, 4096),
                   dcu("gfx928"))
        .partition_tokens;
  };
  CHECK(tokens(1) == 256);
  CHECK(tokens(256) == 0);
}

TEST_CASE("loads of partial results that wait for one another are part of the launch") {
  const StepPlan step = step_of(Phase::decode, 1, 8192);
  const auto chained = [&step](const AttentionKernel& kernel, const Device& device) {
    return lower(find(step, OpKind::attention_decode), step, device, {{}, {}, {&kernel}}).chained_loads;
  };
  CHECK(chained(vllm::kPagedAttention, a100_like()) == 16);  // of 512 tokens
  CHECK(chained(flash_attention::kFlashAttention2, a100_like()) >
        4 * chained(flash_attention::kFlashAttention3, hopper()) * 0.5);
  CHECK(chained(llama_cpp::kPerHead, a100_like()) == 0);
  CHECK(chained(dculab_gpu::kAttention, a100_like()) == 0);
}

}  // namespace
}  // namespace dculab::lower::test
