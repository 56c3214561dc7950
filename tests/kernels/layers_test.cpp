// Do normalisation, embedding, activation and rotary embedding agree with the reference?
#include <cmath>

#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels {
namespace {

struct NormResult {
  std::vector<float> residual, out;
};

template <typename Kernel>
NormResult run_norm(const std::vector<float>* x, std::vector<float> residual, const WeightView& weight, Kernel&& run) {
  NormResult result{std::move(residual), {}};
  result.out.assign(result.residual.size(), NAN);
  RmsNormArgs args;
  args.x = x == nullptr ? nullptr : x->data();
  args.residual = result.residual.data();
  args.weight = weight;
  args.out = result.out.data();
  args.width = weight.rows;
  args.num_tokens = static_cast<int>(result.out.size()) / weight.rows;
  args.epsilon = 1e-5F;
  run(args);
  return result;
}

// Activations, positions, slots and a cache for rope_and_cache, every field the same each time it is built.
struct RopeCase {
  int tokens, heads, kv_heads, head_dim, block_size;
  Dtype dtype;
  std::vector<float> qkv, cos_sin;  // no cos_sin: nothing is rotated
  std::vector<std::int32_t> positions;
  std::vector<std::int64_t> slots;
  std::vector<std::byte> k, v;

  RopeCase(int tokens_, int heads_, int kv_heads_, int head_dim_, int block_size_, Dtype dtype_)
      : tokens(tokens_),
        heads(heads_),
        kv_heads(kv_heads_),
        head_dim(head_dim_),
        block_size(block_size_),
        dtype(dtype_) {
    TensorSource source(5);
    constexpr int kMaxPosition = 100;
    qkv = source.floats(static_cast<std::size_t>(tokens * (heads + 2 * kv_heads) * head_dim));
    for (int position = 0; position < kMaxPosition; ++position) {
      for (int i = 0; i < head_dim; ++i) {
        const double angle = position * std::pow(10000.0, -2.0 * (i % (head_dim / 2)) / head_dim);
        cos_sin.push_back(static_cast<float>(i < head_dim / 2 ? std::cos(angle) : std::sin(angle)));
      }
    }
    const int num_blocks = tokens / block_size + 2;
    for (int token = 0; token < tokens; ++token) {
      positions.push_back(source.integer(0, kMaxPosition - 1));
      slots.push_back(token % 5 == 4 ? -1 : num_blocks * block_size - 1 - token);
    }
    const auto count = static_cast<std::size_t>(num_blocks * kv_heads * block_size * head_dim);
    k = source.stored(count, dtype);
    v = source.stored(count, dtype);
  }

  template <typename Kernel>
  void run(Kernel&& kernel) {
    RopeAndCacheArgs args;
    args.qkv = qkv.data(), args.positions = positions.data(), args.slot_mapping = slots.data();
    args.cos_sin = cos_sin.empty() ? nullptr : cos_sin.data(), args.num_tokens = tokens, args.num_heads = heads;
    args.cache = {k.data(), v.data(), dtype, tokens / block_size + 2, kv_heads, block_size, head_dim};
    kernel(args);
  }
};

std::vector<float> widened_values(const std::vector<std::byte>& values, Dtype dtype) {
  std::vector<float> result(values.size() / static_cast<std::size_t>(bits(dtype) / 8));
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<float>(reference::load_value(values.data(), dtype, i));
  }
  return result;
}

}  // namespace

TEST_CASE("rms_norm agrees with the reference, with and without a residual to add") {
  cpu::ThreadPool threads(2);
  for (const Dtype dtype : kStoredDtypes) {
    for (const auto& [tokens, width] : {std::pair{1, 1}, {1, 8}, {3, 67}, {2, 2048}, {40, 1000}}) {
      TensorSource source(1);
      const auto count = static_cast<std::size_t>(tokens * width);
      const std::vector<float> x = source.floats(count), residual = source.floats(count);
      const std::vector<std::byte> weight = source.stored(static_cast<std::size_t>(width), dtype);
      const WeightView view{weight.data(), dtype, width};
      for (const std::vector<float>* added : {&x, static_cast<const std::vector<float>*>(nullptr)}) {
        const NormResult expected =
            run_norm(added, residual, view, [](const RmsNormArgs& args) { reference::rms_norm(args); });
        for_each_vector_target([&](std::string_view target) {
          INFO(target << " " << name(dtype) << " " << tokens << " x " << width);
          const NormResult result =
              run_norm(added, residual, view, [&](const RmsNormArgs& args) { cpu::rms_norm(threads, args); });
          CHECK(result.residual == expected.residual);
          CHECK(largest_difference(result.out, expected.out) <= 2e-6 * 10);
        });
      }
    }
  }
}

TEST_CASE("embedding copies rows exactly") {
  cpu::ThreadPool threads(2);
  for (const Dtype dtype : kStoredDtypes) {
    for (const int width : {1, 33, 512}) {
      TensorSource source(2);
      constexpr int kVocab = 50, kTokens = 60;
      const std::vector<std::byte> table = source.stored(static_cast<std::size_t>(kVocab * width), dtype);
      std::vector<std::int32_t> ids(kTokens);
      for (std::int32_t& id : ids) id = source.integer(0, kVocab - 1);
      std::vector<float> expected(static_cast<std::size_t>(kTokens * width)), out(expected.size(), NAN);
      EmbeddingArgs args{ids.data(), {table.data(), dtype, kVocab}, expected.data(), kTokens, width};
      reference::embedding(args);
      args.out = out.data();
      for_each_vector_target([&](std::string_view target) {
        INFO(target << " " << name(dtype) << " width " << width);
        std::fill(out.begin(), out.end(), NAN);
        cpu::embedding(threads, args);
        CHECK(out == expected);
      });
    }
  }
}

TEST_CASE("silu_mul agrees with the reference, also far from zero") {
  cpu::ThreadPool threads(2);
  for (const auto& [tokens, width] : {std::pair{1, 1}, {3, 17}, {5, 5632}}) {
    TensorSource source(3);
    std::vector<float> gate_up = source.floats(static_cast<std::size_t>(2 * tokens * width), 3.0F);
    if (width > 8) gate_up[0] = -200.0F, gate_up[1] = 200.0F, gate_up[2] = -95.0F, gate_up[3] = 0.0F;
    std::vector<float> expected(static_cast<std::size_t>(tokens * width)), out(expected.size(), NAN);
    SiluMulArgs args{gate_up.data(), expected.data(), tokens, width};
    reference::silu_mul(args);
    args.out = out.data();
    for_each_vector_target([&](std::string_view target) {
      INFO(target << " " << tokens << " x " << width);
      cpu::silu_mul(threads, args);
      double worst = 0;
      for (std::size_t i = 0; i < out.size(); ++i) {
        worst = std::max(worst, std::abs(double{out[i]} - expected[i]) / (std::abs(double{expected[i]}) + 1e-30));
      }
      CHECK(worst <= 16 * 0x1p-24);
    });
  }
}

TEST_CASE("rope_and_cache rotates Q and K, writes slots rounded to nearest even, and leaves the rest") {
  cpu::ThreadPool threads(3);
  for (const Dtype dtype : kStoredDtypes) {
    for (const int head_dim : {16, 32, 64, 80, 128}) {
      for (const int block_size : {1, 4, 16}) {
        RopeCase expected(23, 6, 2, head_dim, block_size, dtype);
        expected.run([](const RopeAndCacheArgs& args) { reference::rope_and_cache(args); });
        for_each_vector_target([&](std::string_view target) {
          INFO(target << " " << name(dtype) << " head_dim " << head_dim << " block_size " << block_size);
          RopeCase result(23, 6, 2, head_dim, block_size, dtype);
          result.run([&](const RopeAndCacheArgs& args) { cpu::rope_and_cache(threads, args); });
          CHECK(largest_difference(result.qkv, expected.qkv) <= 4 * 0x1p-24 * 8);
          CHECK(result.v == expected.v);
          // A K that differs in its last F32 bit may round to the neighbouring stored value.
          const double ulp = dtype == Dtype::f32 ? 0x1p-21 : dtype == Dtype::f16 ? 0x1p-8 : 0x1p-5;
          CHECK(largest_difference(widened_values(result.k, dtype), widened_values(expected.k, dtype)) <= ulp);
        });
      }
    }
  }
}

TEST_CASE("rope_and_cache does not write tokens without a slot, and gives each head a slot where it is told to") {
  cpu::ThreadPool threads(2);
  for (const Dtype dtype : kStoredDtypes) {
    RopeCase plain(12, 4, 2, 32, 4, dtype);
    plain.run([&](const RopeAndCacheArgs& args) { cpu::rope_and_cache(threads, args); });
    RopeCase skipping(12, 4, 2, 32, 4, dtype), by_head(12, 4, 2, 32, 4, dtype);
    std::vector<std::int64_t> head_slots;
    for (std::size_t token = 0; token < 12; ++token) {
      const std::int64_t slot = skipping.slots[token];
      head_slots.insert(head_slots.end(), {slot, token == 3   ? skipping.slots[5]
                                                 : token == 5 ? skipping.slots[3]
                                                              : slot});
    }
    for (std::size_t token = 0; token < 12; token += 3) skipping.slots[token] = -1;
    RopeCase reference_skipping = skipping;
    const auto with = [&](RopeCase& each, auto change, auto kernel) {
      each.run([&](RopeAndCacheArgs args) {
        change(args);
        kernel(args);
      });
    };
    const auto on_cpu = [&](const RopeAndCacheArgs& args) { cpu::rope_and_cache(threads, args); };
    const auto by_reference = [](const RopeAndCacheArgs& args) { reference::rope_and_cache(args); };
    skipping.run(on_cpu);
    CHECK(skipping.qkv == plain.qkv);  // it is computed all the same
    CHECK(skipping.v != plain.v);
    reference_skipping.run(by_reference);
    CHECK(reference_skipping.v == skipping.v);

    RopeCase expected(12, 4, 2, 32, 4, dtype);
    const auto heads = [&](RopeAndCacheArgs& args) { args.head_slots = head_slots.data(); };
    with(expected, heads, by_reference);
    with(by_head, heads, on_cpu);
    CHECK(by_head.v == expected.v);
    CHECK(by_head.v != plain.v);
  }
}

TEST_CASE("without angles rope_and_cache only writes the cache") {
  cpu::ThreadPool threads(2);
  for (const Dtype dtype : kStoredDtypes) {
    RopeCase expected(23, 6, 2, 40, 4, dtype), result(23, 6, 2, 40, 4, dtype);
    const std::vector<float> before = expected.qkv;
    expected.cos_sin.clear(), result.cos_sin.clear();
    expected.run([](const RopeAndCacheArgs& args) { reference::rope_and_cache(args); });
    result.run([&](const RopeAndCacheArgs& args) { cpu::rope_and_cache(threads, args); });
    CHECK(result.qkv == before);
    CHECK(expected.qkv == before);
    CHECK(result.k == expected.k);
    CHECK(result.v == expected.v);
  }
}

}  // namespace dculab::kernels
