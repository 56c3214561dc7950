// Does the reference's attention agree with torch's, with ALiBi, sliding windows and FP8 KV?
#include <algorithm>
#include <numeric>
#include <random>

#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/golden_tensors.hpp"
#include "tests/support/catch.hpp"

namespace dculab::kernels {
namespace {

// A case of attention.safetensors, twice in one batch so that offsets between sequences count.
class AttentionCase {
 public:
  static constexpr int kSequences = 2;

  AttentionCase(const GoldenTensors& golden, const std::string& name)
      : tokens_(golden.size(name + ".q", 0)),
        heads_(golden.size(name + ".q", 1)),
        context_(golden.size(name + ".k", 0)),
        q_(golden.read<float>(name + ".q")),
        k_(golden.read<std::byte>(name + ".k")),
        v_(golden.read<std::byte>(name + ".v")),
        slopes_(golden.read<float>(name + ".slopes")),
        expected_(golden.read<double>(name + ".expected")) {
    cache_.num_kv_heads = golden.size(name + ".k", 1), cache_.head_dim = golden.size(name + ".k", 2);
    cache_.dtype = Dtype::f32;
    if (golden.all().at(name + ".k").dtype == "U8") {
      cache_.dtype = name == "fp8_e5m2" ? Dtype::fp8_e5m2 : Dtype::fp8_e4m3;
      const auto scales = golden.read<float>(name + ".scales");
      cache_.extras = Fp8KvScales{scales.at(0), scales.at(1)};
    }
    if (golden.has(name + ".window")) window_ = golden.read<std::int32_t>(name + ".window").at(0);
    q_.insert(q_.end(), q_.begin(), q_.begin() + tokens_ * heads_ * cache_.head_dim);
    expected_.insert(expected_.end(), expected_.begin(), expected_.begin() + tokens_ * heads_ * cache_.head_dim);
  }

  // Lays K and V out in shuffled blocks; what no token owns is NaN.
  void page(int block_size) {
    cache_.block_size = block_size;
    blocks_per_seq_ = (context_ + block_size - 1) / block_size;
    cache_.num_blocks = kSequences * blocks_per_seq_ + 1;
    tables_.resize(static_cast<std::size_t>(cache_.num_blocks));
    std::iota(tables_.begin(), tables_.end(), 0);
    std::shuffle(tables_.begin(), tables_.end(), std::mt19937(static_cast<unsigned>(block_size)));
    const int value_bytes = bits(cache_.dtype) / 8;
    const int values = cache_.num_blocks * cache_.num_kv_heads * block_size * cache_.head_dim;
    constexpr std::byte kNan{0xFF};  // in F32 and in both FP8 formats
    k_cache_.assign(static_cast<std::size_t>(values * value_bytes), kNan);
    v_cache_ = k_cache_;
    const int row_bytes = cache_.head_dim * value_bytes;
    for (int token = 0; token < kSequences * context_; ++token) {
      const int position = token % context_;
      const int block = tables_[static_cast<std::size_t>(token / context_ * blocks_per_seq_ + position / block_size)];
      for (int head = 0; head < cache_.num_kv_heads; ++head) {
        const int from = (position * cache_.num_kv_heads + head) * row_bytes;
        const int to = ((block * cache_.num_kv_heads + head) * block_size + position % block_size) * row_bytes;
        std::copy_n(k_.begin() + from, row_bytes, k_cache_.begin() + to);
        std::copy_n(v_.begin() + from, row_bytes, v_cache_.begin() + to);
      }
    }
    cache_.k = k_cache_.data(), cache_.v = v_cache_.data();
  }

  [[nodiscard]] double error() const {
    const std::vector<std::int32_t> starts{0, tokens_, 2 * tokens_}, contexts{context_, context_};
    std::vector<float> out(expected_.size(), NAN);
    PagedAttentionArgs args;
    args.q = q_.data(), args.q_stride = heads_ * cache_.head_dim, args.cache = cache_;
    args.block_tables = tables_.data(), args.max_blocks_per_seq = blocks_per_seq_;
    args.query_start_loc = starts.data(), args.context_lens = contexts.data();
    args.out = out.data(), args.num_seqs = kSequences, args.num_heads = heads_;
    args.scale = 1.0F / std::sqrt(static_cast<float>(cache_.head_dim));
    args.alibi_slopes = slopes_.empty() ? nullptr : slopes_.data(), args.sliding_window = window_;
    reference::paged_attention(args);
    return worst_roundings(out, expected_);
  }

 private:
  int tokens_, heads_, context_;
  std::vector<float> q_;
  std::vector<std::byte> k_, v_;  // as stored, contiguous: [context, kv_heads, head_dim]
  std::vector<float> slopes_;
  std::vector<double> expected_;
  int window_ = 0;
  KvCacheView cache_;
  int blocks_per_seq_ = 0;
  std::vector<std::int32_t> tables_;
  std::vector<std::byte> k_cache_, v_cache_;
};

}  // namespace

TEST_CASE("reference attention agrees with torch: ALiBi, sliding window, FP8 KV, and all of them") {
  const GoldenTensors golden("attention");
  for (const char* name : {"causal", "alibi", "alibi_12_heads", "window", "window_of_1", "window_beyond_context",
                           "fp8_e4m3", "fp8_e5m2", "all"}) {
    AttentionCase attention(golden, name);
    for (const int block_size : {1, 4, 16, 64}) {
      INFO(name << ", block size " << block_size);
      attention.page(block_size);
      CHECK(attention.error() <= kOneRounding);
    }
  }
}

}  // namespace dculab::kernels
