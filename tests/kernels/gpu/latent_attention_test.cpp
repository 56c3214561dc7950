// Does the GPU's attention over latents agree with the reference?
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "lower/dculab_gpu/paged_attention_tiling.hpp"
#include "tests/kernels/gpu/device_under_test.hpp"
#include "tests/kernels/gpu/latent_cases.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels::gpu {
namespace {

struct NewQueries {
  int context = 0, tokens = 1;
  int tree = 0;  // its size
};

struct LatentCase {
  LatentSizes sizes = kOfFewValues;
  Dtype cache = Dtype::f16, query = Dtype::f16, out = Dtype::f32;
  int block_size = 16, partition_tokens = 0;
  std::vector<NewQueries> calls;
};

// Latents in shuffled blocks; slots that no token owns hold NaN.
class LatentTensors {
 public:
  explicit LatentTensors(const LatentCase& test) : test_(test), source_(31) {
    for (const NewQueries& call : test.calls) {
      starts_.push_back(starts_.back() + call.tokens);
      add_masks(call);
      contexts_.push_back(call.context);
      longest_ = std::max(longest_, call.context), most_ = std::max(most_, call.tokens);
    }
    blocks_ = (longest_ + test.block_size - 1) / test.block_size;
    num_blocks_ = blocks_ * static_cast<int>(test.calls.size()) + 1;
    if (bits(test.cache) == 8) scale_ = 0.5F;
    fill();
    q_ = source_.stored(product_of(starts_.back(), q_width()), test.query);
    expect();
  }

  [[nodiscard]] const std::vector<float>& expected() const { return expected_; }

  std::vector<float> run(Device& device) const {
    const int num_seqs = static_cast<int>(contexts_.size()), rank = test_.sizes.kv_lora_rank;
    const DeviceTensor q(device, q_), latents(device, latents_, OperandRole::kv_read), tables(device, tables_);
    const DeviceTensor starts(device, starts_), contexts(device, contexts_);
    const DeviceTensor out(device, bytes_of(test_.out, expected_.size()));
    const DeviceTensor workspace(
        device, sizeof(float) * static_cast<std::size_t>(paged_attention_workspace(
                                    starts_.back(), test_.sizes.num_heads, rank, longest_, test_.partition_tokens)));
    const DeviceTensor masks(device, masks_), trees(device, trees_);
    device.latent_attention({.sizes = test_.sizes,
                             .q = {q.as(), test_.query},
                             .cache = view(latents.as()),
                             .block_tables = tables.as<std::int32_t>(),
                             .max_blocks_per_seq = blocks_,
                             .queries = {.start_loc = starts.as<std::int32_t>(),
                                         .tree_masks = masks.as<std::uint64_t>(),
                                         .tree_sizes = has_trees() ? trees.as<std::int32_t>() : nullptr,
                                         .num_tokens = starts_.back(),
                                         .max_tokens_per_seq = most_},
                             .context_lens = contexts.as<std::int32_t>(),
                             .max_context_len = longest_,
                             .out = {out.as(), test_.out},
                             .num_seqs = num_seqs,
                             .scale = scale(),
                             .partition_tokens = test_.partition_tokens,
                             .workspace = workspace.as<float>()});
    return out.read_numbers(test_.out);
  }

  // As DecodeCase::tolerance() derives it.
  [[nodiscard]] double tolerance(double expected) const {
    const bool is_rounded = test_.query == Dtype::f32 && test_.cache != Dtype::bf16;
    const double score_error = (is_rounded ? 4 * 0x1p-11 / std::sqrt(3.0) : 0.0) + 0x1p-18;
    return rounding(test_.out) * std::abs(expected) + 2 * score_error * largest_;
  }

 private:
  [[nodiscard]] bool has_trees() const {
    return std::ranges::any_of(test_.calls, [](const NewQueries& call) { return call.tree > 0; });
  }
  // Of the last places of a random tree: each sees what its parent, an earlier place, sees.
  void add_masks(const NewQueries& call) {
    std::vector<std::uint64_t> rows;
    for (int place = 0; place < call.tree; ++place) {
      const auto parent = static_cast<std::size_t>(place == 0 ? 0 : source_.integer(0, place - 1));
      rows.push_back((place == 0 ? 0 : rows[parent]) | std::uint64_t{1} << place);
    }
    rows.resize(std::max(rows.size(), static_cast<std::size_t>(call.tokens)));
    masks_.insert(masks_.end(), rows.end() - call.tokens, rows.end());
    trees_.push_back(call.tree);
  }

  [[nodiscard]] int q_width() const { return test_.sizes.num_heads * test_.sizes.latent_width(); }
  [[nodiscard]] float scale() const { return 1.0F / std::sqrt(static_cast<float>(test_.sizes.latent_width())); }

  [[nodiscard]] KvCacheView view(void* latents) const {
    return {.k = latents,
            .v = latents,
            .dtype = test_.cache,
            .num_blocks = num_blocks_,
            .num_kv_heads = 1,
            .block_size = test_.block_size,
            .head_dim = test_.sizes.latent_width(),
            .extras = Fp8KvScales{scale_, scale_},
            .value_dim = test_.sizes.kv_lora_rank};
  }

  void fill() {
    const auto width = static_cast<std::size_t>(test_.sizes.latent_width());
    latents_.assign(bytes_of(test_.cache, product_of(num_blocks_, test_.block_size) * width), std::byte{0xFF});
    std::vector<std::int32_t> blocks(static_cast<std::size_t>(num_blocks_));
    std::iota(blocks.begin(), blocks.end(), 0);
    std::shuffle(blocks.begin(), blocks.end(), std::mt19937(5));
    for (const int context : contexts_) {
      for (int block = 0; block < blocks_; ++block) {
        const bool is_used = block * test_.block_size < context;
        tables_.push_back(is_used ? blocks.back() : -1'000'000);
        if (is_used) blocks.pop_back();
      }
      for (int token = 0; token < context; ++token) {
        const auto block = tables_[tables_.size() - static_cast<std::size_t>(blocks_ - token / test_.block_size)];
        const auto row = source_.stored(width, test_.cache, 1 / scale_);
        const auto slot = product_of(block, test_.block_size) + static_cast<std::size_t>(token % test_.block_size);
        std::copy(row.begin(), row.end(), latents_.begin() + static_cast<std::ptrdiff_t>(slot * row.size()));
        for (const float value : widen(row, test_.cache))
          largest_ = std::max(largest_, std::abs(value * double{scale_}));
      }
    }
  }

  void expect() {
    const auto q = widen(q_, test_.query);
    expected_.assign(product_of(starts_.back(), test_.sizes.num_heads * test_.sizes.kv_lora_rank), NAN);
    reference::paged_attention({.q = q.data(),
                                .q_stride = q_width(),
                                .cache = view(latents_.data()),
                                .block_tables = tables_.data(),
                                .max_blocks_per_seq = blocks_,
                                .query_start_loc = starts_.data(),
                                .context_lens = contexts_.data(),
                                .out = expected_.data(),
                                .num_seqs = static_cast<int>(contexts_.size()),
                                .num_heads = test_.sizes.num_heads,
                                .scale = scale(),
                                .tree = {masks_.data(), trees_.data()}});
  }

  LatentCase test_;
  TensorSource source_;
  std::vector<std::int32_t> starts_{0}, contexts_, tables_, trees_;
  std::vector<std::uint64_t> masks_;  // [tokens], 0 without a tree
  int longest_ = 0, most_ = 0, blocks_ = 0, num_blocks_ = 0;
  float scale_ = 1;
  double largest_ = 0;
  std::vector<std::byte> latents_, q_;
  std::vector<float> expected_;
};

void check_latents(const LatentCase& test) {
  INFO(name(test.cache) << " cache, " << name(test.query) << " query, rank " << test.sizes.kv_lora_rank
                        << ", blocks of " << test.block_size << ", partitions of " << test.partition_tokens);
  const LatentTensors tensors(test);
  for_each_device([&](Device& device) {
    const std::vector<float> got = tensors.run(device);
    for (std::size_t i = 0; i < got.size(); ++i)
      REQUIRE(std::abs(got[i] - tensors.expected()[i]) <= tensors.tolerance(tensors.expected()[i]));
  });
}

}  // namespace

TEST_CASE("GPU attention over latents agrees with the reference in decode", "[gpu]") {
  for (const Dtype cache : kLatentCaches) {
    const LatentSizes sizes = bits(cache) == 8 ? LatentSizes{5, 40, 24, 8, 16} : kOfFewValues;  // rows of 16 bytes
    check_latents({.sizes = sizes, .cache = cache, .calls = {{1}, {16}, {50}}});
    check_latents({.sizes = sizes, .cache = cache, .query = Dtype::f32, .block_size = 1, .calls = {{37}, {2}}});
  }
  check_latents({.sizes = kOfDeepseek, .out = Dtype::f16, .block_size = 64, .calls = {{70}, {3}}});
  check_latents({.sizes = kOfDeepseek, .cache = Dtype::bf16, .query = Dtype::f32, .calls = {{35}}});
  check_latents({.sizes = kOfDeepseek, .cache = Dtype::fp8_e4m3, .calls = {{35}}});
}

TEST_CASE("GPU attention over latents agrees with the reference in partitions", "[gpu]") {
  for (const int partition_tokens : {16, 24, 512})
    check_latents({.partition_tokens = partition_tokens, .calls = {{1}, {16}, {17}, {90}}});
  check_latents({.sizes = kOfDeepseek, .cache = Dtype::fp8_e4m3, .partition_tokens = 32, .calls = {{70}, {9}}});
}

TEST_CASE("GPU attention over latents is causal in prefill, chunks included", "[gpu]") {
  for (const Dtype cache : {Dtype::f16, Dtype::bf16})
    check_latents({.cache = cache, .partition_tokens = 16, .calls = {{21, 21}, {40, 3}, {9, 1}}});
  check_latents({.sizes = kOfDeepseek, .calls = {{20, 5}}});
}

TEST_CASE("GPU attention over latents serves trees, also in partitions", "[gpu]") {
  for (const int partition_tokens : {0, 16, 24}) {
    check_latents({.partition_tokens = partition_tokens, .calls = {{9, 9, 9}, {50, 4, 20}, {40, 3}, {21, 1, 5}}});
    check_latents({.cache = Dtype::bf16,
                   .query = Dtype::f32,
                   .block_size = 1,
                   .partition_tokens = partition_tokens,
                   .calls = {{70, 64, 64}, {2}}});
  }
  check_latents({.sizes = kOfDeepseek, .cache = Dtype::fp8_e4m3, .partition_tokens = 32, .calls = {{70, 6, 6}}});
}

TEST_CASE("GPU kernels of latents refuse what they are not compiled for", "[gpu]") {
  for_each_device([](Device& device) {
    const auto refusal = [&](const LatentSizes& sizes, Dtype cache) {
      try {
        device.latent_attention(
            {.sizes = sizes, .cache = {.dtype = cache, .num_kv_heads = 1, .head_dim = sizes.latent_width()}});
      } catch (const InputError& error) {
        return std::string(error.what());
      }
      return std::string("none");
    };
    CHECK(
        refusal({4, 520, 128, 64, 128}, Dtype::f16) ==
        "latents of 520 values with keys of 64 in f16 have no GPU kernel; there is one for up to 512 values, with the "
        "key up to 576 and a multiple of 8");
    CHECK_THAT(refusal({4, 16, 16, 8, 24}, Dtype::fp8_e4m3), ContainsSubstring("and a multiple of 16"));
    CHECK_THAT(refusal(kOfFewValues, Dtype::int8), ContainsSubstring("a cache of latents in int8 has no GPU kernel"));
    CHECK(refusal(kOfFewValues, Dtype::f16) == "none");
    const auto refuses_cache = [&](int num_kv_heads, int head_dim) {
      CHECK_THROWS_WITH(
          device.latent_attention({.sizes = kOfFewValues,
                                   .cache = {.dtype = Dtype::f16, .num_kv_heads = num_kv_heads, .head_dim = head_dim}}),
          ContainsSubstring("there is one for 1 of " + std::to_string(kOfFewValues.latent_width())));
    };
    refuses_cache(2, kOfFewValues.latent_width());
    refuses_cache(1, kOfFewValues.latent_width() + 8);
    // A workgroup of absorb_k has a whole latent; absorb_v adds over it and takes any.
    const Absorb wide{.sizes = {4, 520, 128, 64, 128}, .kv_b_proj = {nullptr, Dtype::f16}, .x = {}, .y = {}};
    CHECK_THROWS_WITH(device.absorb_k(wide), ContainsSubstring("520 values has no GPU kernel") &&
                                                 ContainsSubstring("there is one for up to 512"));
    CHECK_NOTHROW(device.absorb_v(wide));
    CHECK_THROWS_WITH(
        device.prefill_attention(
            {.q = {}, .cache = {.block_size = 16, .head_dim = 192, .value_dim = 64}, .out = {}, .num_heads = 1}),
        ContainsSubstring("multiples of 8 up to 192 and 128"));
  });
}

}  // namespace dculab::kernels::gpu
