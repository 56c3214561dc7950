// Instructions of vLLM's paged kernel, counted by hand from its loops.
#include "lower/vllm/paged_work.hpp"

#include "tests/support/catch.hpp"

namespace dculab::lower::vllm {
namespace {

VectorWork per_token(int block_size, int heads, int wave_size) {
  AttentionWork work;
  work.head_dim = 128;
  work.block_size = block_size;
  return paged_work_per_token(work, heads, wave_size);
}

double all(const VectorWork& work) { return work.full + work.half; }

TEST_CASE("lanes that share a token load less of it each") {
  // 32 lanes, blocks of 32: a token a lane. 16 loads of K of 16 bytes, 16 of the query, 128 multiply-adds of values
  // that were converted twice, 10 for the score; V: 8 tokens a lane, 8 rows at once, so 16 rows of a load, 7
  // instructions in pairs, 2 conversions and 2 additions; 8 scores by 2 loads and 4 conversions; 2 look-ups of 10.
  CHECK(per_token(32, 1, 32).full == 16 + 16 + 128 + 10 + 16 * 3 + 2 + 20 + 14);
  CHECK(per_token(32, 1, 32).half == 128 * 2 + 16 * 9 + 4);
  // Blocks of 8: 4 lanes a token, 16 loads of 4 bytes, 2 shuffles; 32 rows of V at once.
  CHECK(per_token(8, 1, 32).full == (16 + 4 + 32 + 2 * 2 + 10 + 4 * 3 + 2 + 20) * 32 / 8 + 14);
  CHECK(per_token(8, 1, 32).half == (32 * 2 + 4 * 9 + 4) * 32 / 8);
  CHECK(all(per_token(8, 1, 32)) > 1.25 * all(per_token(32, 1, 32)));
}

TEST_CASE("a block of less than a wave costs the wider wave more") {
  CHECK(all(per_token(16, 1, 64)) > all(per_token(16, 1, 32)));
  CHECK(all(per_token(16, 1, 64)) > all(per_token(32, 1, 64)));
  CHECK(all(per_token(8, 1, 64)) > all(per_token(16, 1, 64)));
}

TEST_CASE("query heads of one workgroup share loads, not arithmetic") {
  const VectorWork one = per_token(16, 1, 64), two = per_token(16, 2, 64), four = per_token(16, 4, 64);
  CHECK(two.half == 2 * one.half);
  CHECK(two.full < 2 * one.full);
  CHECK(two.full > 1.5 * one.full);
  CHECK(four.full - two.full == 2 * (two.full - one.full));
}

TEST_CASE("the waves of 128 threads divide the blocks among them, for K and for V") {
  Device device;
  device.waves.wave_size = 32;
  CHECK(paged_look_up(device).waits == 0.5);
  device.waves.wave_size = 64;
  CHECK(paged_look_up(device).waits == 1);
  CHECK(paged_look_up(device).tokens == 0);
}

}  // namespace
}  // namespace dculab::lower::vllm
