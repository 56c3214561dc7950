// Does paged attention agree with the reference for every dtype, head size, group and context?
#include <cfenv>

#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/paged_sequences.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::kernels {
namespace {

void check_paged_attention(const PagedSequences& sequences, const std::vector<NewTokens>& calls) {
  const std::vector<float> expected =
      sequences.run(calls, [](const PagedAttentionArgs& args) { reference::paged_attention(args); });
  for_each_vector_target([&](std::string_view target) {
    INFO(target);
    // Scores of size about 3 from 128 terms, exp within 4 ulp, weights that sum to 1 over V of size about 4.
    CHECK(largest_difference(sequences.on_cpu(calls), expected) <= 2e-6 * 4);
  });
}

}  // namespace

TEST_CASE("decode agrees with the reference at every kind of context length") {
  const std::vector<int> contexts{1, 2, 15, 16, 17, 63, 64, 65, 511, 512, 513, 1100};
  std::vector<NewTokens> calls;
  for (std::size_t i = 0; i < contexts.size(); ++i) calls.push_back({static_cast<int>(i), contexts[i], 1});
  for (const Dtype dtype : kCachedDtypes) {
    PagedSequences sequences({8, 2, 64, dtype}, contexts);
    for (const int block_size : {1, 2, 16, 256}) {
      INFO(name(dtype) << " block_size " << block_size);
      sequences.page(block_size);
      check_paged_attention(sequences, calls);
    }
  }
}

TEST_CASE("attention agrees with the reference for every head size and group size") {
  std::size_t point = 0;
  for (const Dtype dtype : kCachedDtypes) {
    for (const int head_dim : {8, 16, 32, 64, 80, 96, 128}) {
      if (is_kivi(dtype) && head_dim % kKiviGroup != 0) continue;
      for (const auto& [heads, kv_heads] : {std::pair{4, 4}, {6, 2}, {7, 1}, {16, 2}}) {
        if (thinned_out(point++, 5)) continue;
        INFO(name(dtype) << " head_dim " << head_dim << " heads " << heads << " kv_heads " << kv_heads);
        const PagedSequences sequences({heads, kv_heads, head_dim, dtype}, {75, 20, 33});
        check_paged_attention(sequences, {{0, 75, 75}, {1, 20, 1}, {2, 33, 12}});
      }
    }
  }
}

TEST_CASE("prefill agrees with the reference over several partitions, whole and in chunks") {
  for (const Dtype dtype : kStoredDtypes) {
    INFO(name(dtype));
    const PagedSequences sequences({4, 1, 32, dtype}, {1100});
    if (dtype == Dtype::f32)
      check_paged_attention(sequences, {{0, 1100, 1100}});  // the others give the bits of their chunks
    check_paged_attention(sequences, {{0, 1100, 100}});
    check_paged_attention(sequences, {{0, 1030, 7}});
  }
  for (const Dtype dtype : {Dtype::fp8_e4m3, Dtype::fp8_e5m2, Dtype::int8, Dtype::kivi4, Dtype::kivi2}) {
    INFO(name(dtype));
    const PagedSequences sequences({2, 1, 32, dtype}, {560});
    check_paged_attention(sequences, {{0, 560, 560}});
    check_paged_attention(sequences, {{0, 560, 100}});
    check_paged_attention(sequences, {{0, 530, 7}});
  }
}

TEST_CASE("kivi attention agrees with the reference for every size of the residual") {
  for (const Dtype dtype : {Dtype::kivi4, Dtype::kivi2}) {
    for (const int residual_tokens : {32, 96, 128}) {
      INFO(name(dtype) << " residual " << residual_tokens);
      const PagedSequences sequences({4, 2, 32, dtype, 0, Alibi::off, residual_tokens}, {200, 33, 129});
      check_paged_attention(sequences, {{0, 200, 200}, {1, 33, 1}, {2, 129, 1}});
      check_paged_attention(sequences, {{0, 200, 70}, {2, 129, 100}});
    }
  }
}

TEST_CASE("every FP8 code is widened to its number") {
  for (const Dtype dtype : {Dtype::fp8_e4m3, Dtype::fp8_e5m2}) {
    CacheMemory cache(dtype, 1, 1, 1, 256);
    auto* const k = static_cast<std::uint8_t*>(cache.view.k);
    auto* const v = static_cast<std::uint8_t*>(cache.view.v);
    std::fill_n(k, 256, std::uint8_t{0});
    std::iota(v, v + 256, std::uint8_t{0});
    cache.view.extras = Fp8KvScales{0.75F, 1.0F};
    const std::vector<float> q(256, 1.0F);
    std::vector<float> out(256);
    const std::int32_t table = 0, starts[] = {0, 1}, context = 1;
    PagedAttentionArgs args;
    args.q = q.data(), args.q_stride = 256, args.cache = cache.view, args.out = out.data();
    args.block_tables = &table, args.max_blocks_per_seq = 1, args.query_start_loc = starts;
    args.context_lens = &context, args.num_seqs = 1, args.num_heads = 1;
    for_each_vector_target([&](std::string_view target) {
      cpu::ThreadPool threads(1);
      cpu::Workspace workspace;
      cpu::paged_attention(threads, workspace, args);  // one token: its V
      for (int code = 0; code < 256; ++code) {
        INFO(target << " " << name(dtype) << " code " << code);
        const auto byte = static_cast<std::uint8_t>(code);
        const float number = dtype == Dtype::fp8_e4m3 ? f32_from_fp8_e4m3(byte) : f32_from_fp8_e5m2(byte);
        const float widened = out[static_cast<std::size_t>(code)];
        CHECK((std::isnan(number) ? std::isnan(widened) : widened == number));
      }
    });
  }
}

TEST_CASE("ALiBi agrees with the reference, also where heads are no power of two") {
  for (const Dtype dtype : kStoredDtypes) {
    for (const auto& [heads, kv_heads] : {std::pair{4, 4}, {6, 6}, {12, 2}, {7, 1}}) {
      INFO(name(dtype) << " heads " << heads << " kv_heads " << kv_heads);
      const PagedSequences sequences({heads, kv_heads, 32, dtype, 0, Alibi::on}, {75, 20, 600});
      check_paged_attention(sequences, {{0, 75, 75}, {1, 20, 1}, {2, 600, 1}});
      check_paged_attention(sequences, {{2, 600, 40}});
    }
  }
}

TEST_CASE("soft caps agree with the reference, beside windows and ALiBi") {
  for (const float cap : {0.5F, 50.0F})
    for (const Alibi alibi : {Alibi::off, Alibi::on}) {
      INFO("cap " << cap);
      const PagedSequences sequences({4, 2, 32, Dtype::f16, 40, alibi, 64, cap}, {75, 20, 600});
      check_paged_attention(sequences, {{0, 75, 75}, {1, 20, 1}, {2, 600, 1}});
      check_paged_attention(sequences, {{2, 600, 40}});
    }
}

TEST_CASE("attention makes no subnormal numbers where scores lie far apart") {
  const PagedSequences sequences({4, 2, 32, Dtype::f32}, {64});  // one KV tile: sums do not fade from tile to tile
  cpu::ThreadPool caller(1);                                     // whose floating-point exceptions are this thread's
  cpu::Workspace workspace;
  for_each_vector_target([&](std::string_view target) {
    for (const int tokens : {1, 64}) {
      INFO(target << ", " << tokens << " tokens");
      std::feclearexcept(FE_UNDERFLOW);
      const auto out = sequences.run({{0, 64, tokens}}, [&](PagedAttentionArgs args) {
        args.scale = 8;  // scores of about 50
        cpu::paged_attention(caller, workspace, args);
      });
      CHECK(std::fetestexcept(FE_UNDERFLOW) == 0);
    }
  });
}

TEST_CASE("a sliding window agrees with the reference, shorter and longer than tiles, partitions and chunks") {
  for (const int window : {1, 2, 17, 63, 64, 65, 300, 512, 700, 5000}) {
    if (kSanitized && window != 1 && window != 65 && window != 700) continue;
    for (const Alibi alibi : {Alibi::off, Alibi::on}) {
      INFO("window " << window << (alibi == Alibi::on ? " with ALiBi" : ""));
      const PagedSequences sequences({4, 2, 16, Dtype::f32, window, alibi}, {1100, 70, 513});
      check_paged_attention(sequences, {{0, 1100, 1}, {1, 70, 1}, {2, 513, 1}});
      check_paged_attention(sequences, {{0, 1100, 300}, {1, 70, 70}});
      check_paged_attention(sequences, {{0, 1100, 9}, {2, 513, 513}});
    }
  }
}

TEST_CASE("a window reads nothing of the KV tiles that no query sees") {
  for (const auto& [context, tokens] : {std::pair{1100, 1}, {1100, 9}, {700, 100}}) {
    constexpr int kWindow = 200, kTile = 64;
    PagedSequences sequences({4, 2, 32, Dtype::f16, kWindow}, {1100});
    for_each_vector_target([&](std::string_view target) {
      INFO(target << ", " << tokens << " tokens of " << context);
      const std::vector<float> expected = sequences.on_cpu({{0, context, tokens}});
      PagedSequences without = sequences;
      without.forget(0, (context - tokens + 1 - kWindow) / kTile * kTile);
      CHECK(without.on_cpu({{0, context, tokens}}) == expected);
    });
  }
}

}  // namespace dculab::kernels
