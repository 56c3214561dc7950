// Latent attention on the CPU against the reference: rotation and cache, attention over latents and over what they
// expand to.
#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/cpu/latent_kernels.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "tests/kernels/paged_sequences.hpp"

namespace dculab::kernels {
namespace {

constexpr Dtype kLatentDtypes[] = {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2, Dtype::int8};
// Small, with a rest for every vector; and DeepSeek's.
constexpr LatentSizes kSmall{3, 40, 24, 8, 16}, kDeepseek{4, 512, 128, 64, 128};

// The cache of one layer, with room for `num_blocks` blocks: latents that are K and V.
struct LatentCache : public CacheMemory {
  LatentCache(const LatentSizes& sizes, Dtype dtype, int num_blocks, int block_size)
      : CacheMemory(dtype, num_blocks, 1, block_size, sizes.latent_width()) {
    view.v = view.k, view.value_dim = sizes.kv_lora_rank;
    view.extras = Fp8KvScales{0.75F, 0.75F};
    if (dtype == Dtype::int8) view.extras = Int8KvScales{k_scales.data(), k_scales.data()};
  }
};

// kTokens tokens of a step: queries and latents in wider rows.
struct LatentStep {
  static constexpr int kTokens = 7, kGap = 5;
  LatentSizes sizes;
  std::vector<float> q, latents, cos_sin;
  std::vector<std::int32_t> positions{4, 0, 1, 9, 3, 2, 11};
  std::vector<std::int64_t> slots{13, 2, -1, 7, -1, 30, 21};

  explicit LatentStep(const LatentSizes& of) : sizes(of), cos_sin(rotation_angles(12, of.qk_rope_head_dim, 0.37F)) {
    TensorSource source(3);
    q = source.floats(static_cast<std::size_t>(kTokens) * static_cast<std::size_t>(q_stride()));
    latents = source.floats(static_cast<std::size_t>(kTokens) * static_cast<std::size_t>(latent_stride()));
  }
  [[nodiscard]] int q_stride() const { return sizes.num_heads * sizes.qk_head_dim() + kGap; }
  [[nodiscard]] int latent_stride() const { return sizes.latent_width() + kGap; }
  [[nodiscard]] LatentRopeArgs args(const KvCacheView& cache, bool neighbours) {
    return {.sizes = sizes,
            .q = q.data(),
            .q_stride = q_stride(),
            .latents = latents.data(),
            .latent_stride = latent_stride(),
            .positions = positions.data(),
            .slot_mapping = slots.data(),
            .cos_sin = cos_sin.data(),
            .cache = cache,
            .num_tokens = kTokens,
            .neighbours = neighbours};
  }
};

struct Gathered {
  std::vector<float> latents, keys;
};

template <typename Kernel>
Gathered gather(const LatentSizes& sizes, const KvCacheView& cache, int begin, int end, Kernel&& kernel) {
  const auto count = static_cast<std::size_t>(end - begin);
  const std::int32_t table[] = {3, 0, 2, 1};
  Gathered result{std::vector<float>(count * static_cast<std::size_t>(sizes.kv_lora_rank)),
                  std::vector<float>(count * static_cast<std::size_t>(sizes.qk_rope_head_dim))};
  kernel(GatherLatentsArgs{sizes, cache, table, begin, end, result.latents.data(), result.keys.data()});
  return result;
}

// Attention of one new token each of sequences that share blocks, [tokens, heads, value_width].
template <typename Kernel>
std::vector<float> attend(const KvCacheView& cache, int heads, const std::vector<std::int32_t>& contexts,
                          Kernel&& kernel) {
  const int blocks = cache.num_blocks, tokens = static_cast<int>(contexts.size());
  std::vector<float> q = TensorSource(8).floats(static_cast<std::size_t>(tokens * heads * cache.head_dim));
  std::vector<std::int32_t> tables, starts(contexts.size() + 1);
  std::iota(starts.begin(), starts.end(), 0);
  for (int seq = 0; seq < tokens; ++seq)
    for (int block = 0; block < blocks; ++block) tables.push_back((block * 3 + seq) % blocks);
  std::vector<float> out(static_cast<std::size_t>(tokens * heads * cache.value_width()), NAN);
  kernel(PagedAttentionArgs{.q = q.data(),
                            .q_stride = std::int64_t{heads} * cache.head_dim,
                            .cache = cache,
                            .block_tables = tables.data(),
                            .max_blocks_per_seq = blocks,
                            .query_start_loc = starts.data(),
                            .context_lens = contexts.data(),
                            .out = out.data(),
                            .num_seqs = tokens,
                            .num_heads = heads,
                            .scale = 1.0F / std::sqrt(static_cast<float>(cache.head_dim))});
  return out;
}

void check_attention(const KvCacheView& cache, int heads, const std::vector<std::int32_t>& contexts) {
  const auto expected = attend(cache, heads, contexts, [](const auto& args) { reference::paged_attention(args); });
  std::vector<float> bits;
  for_each_vector_target([&](std::string_view target) {
    INFO(target << " " << name(cache.dtype));
    for (const int num_threads : {1, 3}) {
      cpu::ThreadPool threads(num_threads);
      cpu::Workspace workspace;
      const auto actual =
          attend(cache, heads, contexts, [&](const auto& args) { cpu::paged_attention(threads, workspace, args); });
      // Scores of size about 3 from 576 terms, exp within 4 ulp, weights that sum to 1 over V of size about 4.
      CHECK(largest_difference(actual, expected) <= 2e-6 * 4);
      if (num_threads == 1) bits = actual;
      CHECK(actual == bits);
    }
  });
}

void fill(std::vector<std::uint16_t>& memory, const KvCacheView& cache) {
  TensorSource source(9);
  const std::size_t bytes = memory.size() * 2;
  if (cache.dtype != Dtype::int8) {
    const auto values = source.stored(bytes * 8 / static_cast<std::size_t>(bits(cache.dtype)), cache.dtype);
    std::memcpy(memory.data(), values.data(), bytes);
    return;
  }
  for (std::size_t i = 0; i < bytes; ++i)
    static_cast<std::int8_t*>(cache.k)[i] = static_cast<std::int8_t>(source.integer(-127, 127));
  for (int slot = 0; slot < cache.num_blocks * cache.block_size; ++slot)
    cache.extras.as<Int8KvScales>().k[slot] = 0.004F * static_cast<float>(1 + slot % 5);
}

}  // namespace

TEST_CASE("latents: rotated parts and cached rows are those of the reference, in every format") {
  for (const Dtype dtype : kLatentDtypes)
    for (const bool neighbours : {true, false})
      for_each_vector_target([&](std::string_view target) {
        INFO(target << " " << name(dtype) << " neighbours " << neighbours);
        LatentStep actual(kSmall), expected(kSmall);
        LatentCache actual_cache(kSmall, dtype, 4, 8), expected_cache(kSmall, dtype, 4, 8);
        cpu::ThreadPool threads(2);
        cpu::latent_rope_and_cache(threads, actual.args(actual_cache.view, neighbours));
        reference::latent_rope_and_cache(expected.args(expected_cache.view, neighbours));
        CHECK(largest_difference(actual.q, expected.q) <= 1e-6);
        CHECK(largest_difference(actual.latents, expected.latents) <= 1e-6);
        // Written are the tokens with a slot that is not skipped; the others stay NaN.
        for (const std::int64_t slot : {13, 2, 7, 30, 21, 8, 0}) {
          const auto at = [&](const KvCacheView& cache, int d) {
            return reference::load_cached(cache, reference::KvTensor::k,
                                          reference::cache_index(cache, reference::KvTensor::k, slot, 0, d));
          };
          for (int d = 0; d < kSmall.latent_width(); ++d) {
            const double stored = at(actual_cache.view, d), wanted = at(expected_cache.view, d);
            if (slot == 8 || slot == 0)
              CHECK((std::isnan(stored) || dtype == Dtype::int8));
            else  // a rotated value may round to its neighbour: the widest step is that of E5M2, a quarter
              CHECK(std::abs(stored - wanted) <= 1e-6 + 0.25 * std::abs(wanted) * (bits(dtype) == 8 ? 1 : 0.01));
          }
        }
      });
}

TEST_CASE("latents: what is gathered is what the cache holds") {
  for (const Dtype dtype : kLatentDtypes) {
    LatentCache cache(kSmall, dtype, 4, 8);
    fill(cache.k, cache.view);
    const auto expected =
        gather(kSmall, cache.view, 3, 29, [](const GatherLatentsArgs& args) { reference::gather_latents(args); });
    for_each_vector_target([&](std::string_view target) {
      INFO(target << " " << name(dtype));
      cpu::ThreadPool threads(2);
      const auto actual =
          gather(kSmall, cache.view, 3, 29, [&](const GatherLatentsArgs& args) { cpu::gather_latents(threads, args); });
      CHECK(actual.latents == expected.latents);
      CHECK(actual.keys == expected.keys);
    });
  }
}

TEST_CASE("latents: attention takes V out of the rows of K, for many query heads and several partitions") {
  for (const Dtype dtype : kLatentDtypes) {
    LatentCache cache(kSmall, dtype, 40, 32);
    fill(cache.k, cache.view);
    for (const int heads : {3, 20}) check_attention(cache.view, heads, {1, 17, 64, 300, 1100});
  }
  LatentCache wide(kDeepseek, Dtype::bf16, 3, 64);
  fill(wide.k, wide.view);
  check_attention(wide.view, 130, {70, 192});  // more heads than rows that share a pass
}

TEST_CASE("latents: attention serves values of another size than keys") {
  for (const int value_dim : {8, 24, 64})
    for (const int heads : {2, 12}) {
      CacheMemory cache(Dtype::f32, 10, 2, 64, 40);
      std::vector<float> values =
          TensorSource(4).floats(std::size_t{10} * 2 * 64 * static_cast<std::size_t>(value_dim));
      fill(cache.k, cache.view);
      cache.view.v = values.data(), cache.view.value_dim = value_dim;
      check_attention(cache.view, heads, {5, 200, 600});
    }
}

TEST_CASE("latents: K and V of all heads lie where attention looks for them") {
  const int tokens = 9;
  const auto heads = static_cast<std::size_t>(kSmall.num_heads);
  const auto expanded = TensorSource(1).floats(tokens * heads * static_cast<std::size_t>(kSmall.expanded_head_dim()));
  const auto keys = TensorSource(2).floats(static_cast<std::size_t>(tokens * kSmall.qk_rope_head_dim));
  const auto store = [&](auto&& kernel) {
    std::vector<float> k(4 * 8 * heads * static_cast<std::size_t>(kSmall.qk_head_dim()), -1.0F);
    std::vector<float> v(4 * 8 * heads * static_cast<std::size_t>(kSmall.v_head_dim), -1.0F);
    kernel(StoreExpandedArgs{.sizes = kSmall,
                             .expanded = expanded.data(),
                             .keys = keys.data(),
                             .cache = {.k = k.data(),
                                       .v = v.data(),
                                       .dtype = Dtype::f32,
                                       .num_blocks = 4,
                                       .num_kv_heads = kSmall.num_heads,
                                       .block_size = 8,
                                       .head_dim = kSmall.qk_head_dim(),
                                       .value_dim = kSmall.v_head_dim},
                             .first_slot = 11,
                             .num_tokens = tokens});
    k.insert(k.end(), v.begin(), v.end());
    return k;
  };
  cpu::ThreadPool threads(2);
  CHECK(store([&](const auto& args) { cpu::store_expanded(threads, args); }) ==
        store([](const auto& args) { reference::store_expanded(args); }));
}

TEST_CASE("latents: a cache of other heads is refused") {
  LatentStep step(kSmall);
  LatentCache cache(kSmall, Dtype::f16, 4, 8);
  cpu::ThreadPool threads(1);
  LatentRopeArgs args = step.args(cache.view, true);
  args.cache.num_kv_heads = 2;
  CHECK_THROWS_AS(cpu::latent_rope_and_cache(threads, args), std::invalid_argument);
}

}  // namespace dculab::kernels
