// Does the GPU's decode attention agree with the reference, however it is cut, and does it load what it must and no
// more?
#include "core/error.hpp"
#include "kernels/gpu/attention/cached_chunk.hpp"
#include "kernels/number_format.hpp"
#include "tests/kernels/gpu/decode_case.hpp"

namespace dculab::kernels::gpu {
namespace {

void check_result(const DecodeCase& decode, const std::vector<float>& got) {
  REQUIRE(got.size() == decode.expected().size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double expected = decode.expected()[i];
    INFO("value " << i << ": " << got[i] << ", expected " << expected);
    if (!(std::abs(got[i] - expected) <= decode.tolerance(expected))) FAIL_CHECK("too far");
  }
}

void check_on_devices(const DecodeCase& decode, const DecodeCut& cut = {}) {
  CAPTURE(cut.heads_per_workgroup, cut.partition_tokens);
  for_each_device([&](Device& device) { check_result(decode, decode.run(device, cut)); });
}

}  // namespace

// The lists have 4, 7, 9 and 11 entries: without common divisors, so 99 cases meet every pair of two lists.
TEST_CASE("GPU decode attention agrees with the reference for each format, head size, block size and group size",
          "[gpu]") {
  constexpr Dtype kCaches[] = {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2};
  constexpr int kHeadDims[] = {32, 64, 80, 96, 112, 128, 256};
  constexpr int kBlockSizes[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};
  constexpr int kGroupSizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32};
  for (unsigned i = 0; i < 99; ++i) {
    DecodeShape shape;
    shape.cache = kCaches[i % 4], shape.head_dim = kHeadDims[i % 7];
    shape.block_size = kBlockSizes[i % 9], shape.group_size = kGroupSizes[i % 11];
    shape.query = i % 5 < 3 ? Dtype::f16 : Dtype::f32, shape.out = i % 3 == 0 ? Dtype::f16 : Dtype::f32;
    shape.num_kv_heads = shape.group_size <= 4 ? 2 : 1;
    shape.contexts = {1 + static_cast<int>(i % 13), shape.block_size + static_cast<int>(i % 3) - 1};
    shape.contexts[1] = std::max(1, shape.contexts[1]);
    CAPTURE(i, name(shape.cache), shape.head_dim, shape.block_size, shape.group_size);
    check_on_devices(DecodeCase(shape));
  }
}

TEST_CASE("GPU decode attention widens every FP8 code exactly", "[gpu]") {
  const auto same = [](float a, float b) { return std::isnan(a) ? std::isnan(b) : a == b; };
  for (unsigned code = 0; code < 256; ++code) {
    // As the first and the second value of the third pair.
    const host_build::CachedChunk first{{0, code, 0, 0}}, second{{0, code << 8, 0, 0}};
    const auto byte = static_cast<std::uint8_t>(code);
    CAPTURE(code);
    using E4M3 = host_build::CachedNumbers<host_build::Fp8E4M3>;
    CHECK(same(low_of(E4M3::pair(first, 2)), f32_from_fp8_e4m3(byte)));
    CHECK(same(high_of(E4M3::pair(second, 2)), f32_from_fp8_e4m3(byte)));
    using E5M2 = host_build::CachedNumbers<host_build::Fp8E5M2>;
    CHECK(same(low_of(E5M2::pair(first, 2)), f32_from_fp8_e5m2(byte)));
    CHECK(same(high_of(E5M2::pair(second, 2)), f32_from_fp8_e5m2(byte)));
  }
}

TEST_CASE("GPU decode attention serves a whole group in one workgroup, however large", "[gpu]") {
  const auto cache = GENERATE(Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3);
  // Falcon-7B's 71 heads, and what fills a workgroup: 8192 values of the query heads at head sizes that are powers
  // of 2.
  const auto [group_size, head_dim] = GENERATE(std::pair(71, 64), std::pair(64, 128), std::pair(32, 256));
  CAPTURE(name(cache), group_size, head_dim);
  check_on_devices(DecodeCase({.cache = cache,
                               .head_dim = head_dim,
                               .num_kv_heads = 1,
                               .group_size = group_size,
                               .block_size = 8,
                               .contexts = {33}}));
}

TEST_CASE("GPU decode attention: contexts around a block, partitions, ALiBi and windows, for each cut", "[gpu]") {
  const auto cache = GENERATE(Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3);
  const bool has_alibi = GENERATE(false, true);
  const int window = GENERATE(0, 1, 37);
  CAPTURE(name(cache), has_alibi, window);
  const DecodeCase decode({.cache = cache,
                           .head_dim = 64,
                           .num_kv_heads = 1,
                           .group_size = 6,
                           .block_size = 16,
                           .contexts = {1, 15, 16, 17, 130},
                           .has_alibi = has_alibi,
                           .sliding_window = window});
  for (const int heads : {0, 1, 2, 3})
    for (const int partition : {0, 24, 64})
      if (heads == 0 || partition != 24) check_on_devices(decode, {heads, partition});
}

TEST_CASE("GPU decode attention caps its scores, before ALiBi", "[gpu]") {
  const auto cache = GENERATE(Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3);
  const bool has_alibi = GENERATE(false, true);
  const float cap = GENERATE(0.5F, 2.0F, 50.0F);  // scores are about 1
  CAPTURE(name(cache), has_alibi, cap);
  const DecodeCase decode({.cache = cache,
                           .head_dim = 64,
                           .num_kv_heads = 1,
                           .group_size = 2,
                           .contexts = {1, 130},
                           .has_alibi = has_alibi,
                           .logit_soft_cap = cap});
  for (const int partition : {0, 64}) check_on_devices(decode, {0, partition});
}

TEST_CASE("GPU decode attention does not depend on how it is cut", "[gpu]") {
  const auto cache = GENERATE(Dtype::f16, Dtype::fp8_e5m2);
  const DecodeCase decode({.cache = cache,
                           .head_dim = 128,
                           .num_kv_heads = 1,
                           .group_size = 8,
                           .block_size = 32,
                           .contexts = {700, 3},
                           .has_alibi = true});
  const auto device = open_host_device({});
  const auto whole = decode.run(*device);
  check_result(decode, whole);
  // Sums of 700 weighted values of size 1 in another order: 700 roundings of 2^-24 that add up like a random walk, each
  // partition and each head's sum alike; four times that.
  const double reordering = 4 * std::sqrt(700.0) * 0x1p-24;
  for (const auto& cut : {DecodeCut{1, 0}, DecodeCut{2, 128}, DecodeCut{0, 256}, DecodeCut{0, 32}, DecodeCut{4, 1}}) {
    CAPTURE(cut.heads_per_workgroup, cut.partition_tokens);
    CHECK(largest_difference(decode.run(*device, cut), whole) <= reordering);
  }
}

namespace {

// How often each byte of a buffer is loaded.
std::vector<int> loads_of(const AddressTrace& trace, const TracedBuffer& buffer) {
  std::vector<int> loads(buffer.bytes);
  for (const WaveAccess& access : trace.accesses) {
    if (access.address < buffer.address || access.address >= buffer.address + buffer.bytes) continue;
    CHECK(access.kind == AccessKind::load);
    CHECK(access.lane_bytes == access.bytes);  // no byte twice in one instruction
    for (std::uint32_t i = 0; i < access.bytes; ++i) ++loads[access.address - buffer.address + i];
  }
  return loads;
}

}  // namespace

TEST_CASE("GPU decode attention loads each KV byte it attends to once per workgroup, and no other", "[gpu]") {
  const auto cache = GENERATE(Dtype::f16, Dtype::bf16, Dtype::fp8_e5m2);
  const int group_size = GENERATE(4, 8, 24);
  const int heads = GENERATE(0, 1, 2);
  const int partition = GENERATE(0, 40);
  const int wave_size = GENERATE(32, 64);
  CAPTURE(name(cache), group_size, heads, partition, wave_size);
  const DecodeCase decode({.cache = cache,
                           .head_dim = 80,
                           .num_kv_heads = 2,
                           .group_size = group_size,
                           .block_size = 16,
                           .contexts = {70, 5},
                           .sliding_window = 43});
  host::AddressRecorder recorder;
  const auto device = open_host_device({.wave_size = wave_size, .recorder = &recorder});
  AddressTrace trace;
  (void)decode.with_args(*device, {heads, partition}, [&](const PagedAttention& args) {
    device->paged_attention(args);
    trace = recorder.take_launches().front();  // of two passes, the first
  });
  const int workgroups = heads == 0 ? 1 : group_size / heads;
  int caches = 0;
  for (const TracedBuffer& buffer : trace.buffers) {
    if (buffer.role != OperandRole::kv_read) continue;
    ++caches;
    const auto loads = loads_of(trace, buffer);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < loads.size(); ++i) wrong += loads[i] != (decode.attended()[i] != 0 ? workgroups : 0);
    CHECK(wrong == 0);
  }
  CHECK(caches == 2);
}

TEST_CASE("GPU decode attention names what it does not support", "[gpu]") {
  const auto device = open_host_device({});
  const auto refusal = [&](DecodeShape shape, DecodeCut cut) {
    try {
      (void)DecodeCase(std::move(shape)).run(*device, cut);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  const std::string start = "decode attention on the GPU: ";
  CHECK_THAT(refusal({.head_dim = 72}, {}),
             Catch::Contains(start + "head size 72 is not supported; use a multiple of 16"));
  CHECK_THAT(refusal({.block_size = 24}, {}),
             Catch::Contains(start + "block size 24 is not supported; use a power of two"));
  CHECK_THAT(refusal({.block_size = 512}, {}), Catch::Contains(start + "block size 512"));
  CHECK_THAT(refusal({.group_size = 6}, {4, 0}),
             Catch::Contains(start + "heads_per_workgroup 4 is not supported; use 0 or a divisor of 6"));
  CHECK_THAT(refusal({.cache = Dtype::f32}, {}), Catch::Contains("f16, bf16, fp8_e4m3, fp8_e5m2"));
  CHECK_THAT(refusal({.head_dim = 256, .num_kv_heads = 1, .group_size = 33}, {}), Catch::Contains("at most 32"));
}

TEST_CASE("Partitions of decode attention, and the room for what they find") {
  CHECK(paged_attention_partitions(4096, 0) == 1);
  CHECK(paged_attention_partitions(4097, 1024) == 5);
  CHECK(paged_attention_workspace(2, 32, 128, 4097, 1024) == 2 * 32 * 5 * 130);
  CHECK(paged_attention_workspace(2, 32, 128, 1000, 1024) == 0);
}

}  // namespace dculab::kernels::gpu
