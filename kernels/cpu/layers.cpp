// The small kernels of a Llama layer, and those of its kin that norm Q and K or have norms after each half.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/cpu/cpu_kernels.hpp"
#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/for_each_token.hpp"
#include "kernels/cpu/preconditions.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layers.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h:

#include "kernels/cpu/exponential-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {
namespace {

// residual += x; returns 1 / rms(residual).
float add_and_measure(const RmsNormArgs& args, const float* x, float* residual) {
  Vector squares = hn::Zero(F32());
  for (int i = 0; i < args.width; i += kLanes) {
    const int count = args.width - i;
    Vector value = load_first(residual + i, count);
    if (x != nullptr) {
      value = hn::Add(value, load_first(x + i, count));
      store_first(value, residual + i, count);
    }
    squares = hn::MulAdd(value, value, squares);
  }
  return 1.0F / std::sqrt(sum(squares) / static_cast<float>(args.width) + args.epsilon);
}

// One head of one token, in place.
template <typename Weight>
void norm_head(const HeadNormArgs& args, const Weight* weight, float* head) {
  Vector squares = hn::Zero(F32());
  for (int i = 0; i < args.head_dim; i += kLanes) {
    const Vector value = load_first(head + i, args.head_dim - i);
    squares = hn::MulAdd(value, value, squares);
  }
  const float mean = sum(squares) / static_cast<float>(args.head_dim);
  const Vector scale = hn::Set(F32(), 1.0F / std::sqrt(mean + args.epsilon));
  const Vector offset = hn::Set(F32(), args.weight_offset);
  for (int i = 0; i < args.head_dim; i += kLanes) {
    const int count = args.head_dim - i;
    const Vector gain = hn::Add(load_first(weight + i, count), offset);
    store_first(hn::Mul(hn::Mul(load_first(head + i, count), scale), gain), head + i, count);
  }
}

// body(begin, count) for chunks of `total` values, which are worth `cost` vectors of plain work each.
template <typename Body>
void for_each_chunk(ThreadPool& threads, std::int64_t total, int cost, Body&& body) {
  constexpr int kChunkValues = 4096;
  const auto chunks = static_cast<int>((total + kChunkValues - 1) / kChunkValues);
  for_each_token(threads, chunks, std::min<std::int64_t>(total, kChunkValues) * cost, [&](int chunk) {
    const std::int64_t begin = std::int64_t{chunk} * kChunkValues;
    body(begin, static_cast<int>(std::min<std::int64_t>(kChunkValues, total - begin)));
  });
}

template <typename From>
void scaled_copy(const From* from, int count, float scale, float* to) {
  for (int i = 0; i < count; i += kLanes)
    store_first(hn::Mul(load_first(from + i, count - i), hn::Set(F32(), scale)), to + i, count - i);
}

}  // namespace

void rms_norm_impl(ThreadPool& threads, const RmsNormArgs& args) {
  for_each_token(threads, args.num_tokens, args.width, [&](int token) {
    const std::ptrdiff_t offset = std::ptrdiff_t{token} * args.width;
    float* residual = args.residual + offset;
    const float scale = add_and_measure(args, args.x == nullptr ? nullptr : args.x + offset, residual);
    with_stored_type(args.weight.data, args.weight.dtype, [&](auto* weight) {
      for (int i = 0; i < args.width; i += kLanes) {
        const int count = args.width - i;
        const Vector normed = hn::Mul(load_first(residual + i, count), hn::Set(F32(), scale));
        const Vector gain = hn::Add(load_first(weight + i, count), hn::Set(F32(), args.weight_offset));
        store_first(hn::Mul(normed, gain), args.out + offset + i, count);
      }
    });
  });
}

void embedding_impl(ThreadPool& threads, const EmbeddingArgs& args) {
  for_each_token(threads, args.num_tokens, args.width, [&](int token) {
    with_stored_type(args.table.data, args.table.dtype, [&](auto* table) {
      scaled_copy(table + std::ptrdiff_t{args.token_ids[token]} * args.width, args.width, args.scale,
                  args.out + std::ptrdiff_t{token} * args.width);
    });
  });
}

void head_norm_impl(ThreadPool& threads, const HeadNormArgs& args) {
  for_each_token(threads, args.num_tokens, std::int64_t{args.num_heads} * args.head_dim, [&](int token) {
    with_stored_type(args.weight.data, args.weight.dtype, [&](auto* weight) {
      float* const row = args.x + token * args.stride;
      for (int head = 0; head < args.num_heads; ++head)
        norm_head(args, weight, row + std::ptrdiff_t{head} * args.head_dim);
    });
  });
}

void residual_add_impl(ThreadPool& threads, const ResidualAddArgs& args) {
  for_each_chunk(threads, args.count, 1, [&](std::int64_t begin, int chunk) {
    float* const residual = args.residual + begin;
    for (int i = 0; i < chunk; i += kLanes) {
      const int count = chunk - i;
      Vector value = load_first(residual + i, count);
      if (args.x != nullptr) value = hn::Add(value, load_first(args.x + begin + i, count));
      store_first(value, residual + i, count);
      store_first(value, args.out + begin + i, count);
    }
  });
}

void soft_cap_impl(ThreadPool& threads, const SoftCapArgs& args) {
  constexpr int kTanhCost = 4;
  const Vector cap = hn::Set(F32(), args.cap);
  for_each_chunk(threads, args.count, kTanhCost, [&](std::int64_t begin, int chunk) {
    for (int i = 0; i < chunk; i += kLanes) {
      const Vector value = load_first(args.x + begin + i, chunk - i);
      store_first(capped(value, cap), args.x + begin + i, chunk - i);
    }
  });
}

void silu_mul_impl(ThreadPool& threads, const SiluMulArgs& args) {
  constexpr int kExpCost = 4;  // vectors of plain work that one of exp is worth
  for_each_token(threads, args.num_tokens, std::int64_t{args.width} * kExpCost, [&](int token) {
    const float* gate = args.gate_up + std::ptrdiff_t{token} * 2 * args.width;
    const float* up = gate + args.width;
    float* out = args.out + std::ptrdiff_t{token} * args.width;
    const Vector one = hn::Set(F32(), 1.0F);
    for (int i = 0; i < args.width; i += kLanes) {
      const int count = args.width - i;
      const Vector g = load_first(gate + i, count);
      const Vector e = exponential(hn::Neg(g));
      store_first(hn::Mul(hn::Div(g, hn::Add(one, e)), load_first(up + i, count)), out + i, count);
    }
  });
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dculab::kernels::cpu {

HWY_EXPORT(rms_norm_impl);
HWY_EXPORT(embedding_impl);
HWY_EXPORT(head_norm_impl);
HWY_EXPORT(residual_add_impl);
HWY_EXPORT(soft_cap_impl);
HWY_EXPORT(silu_mul_impl);

void rms_norm(ThreadPool& threads, const RmsNormArgs& args) {
  require_plain_floats(args.weight.dtype, "rms_norm", "weight");
  HWY_DYNAMIC_DISPATCH(rms_norm_impl)(threads, args);
}
void embedding(ThreadPool& threads, const EmbeddingArgs& args) {
  require_plain_floats(args.table.dtype, "embedding", "table");
  HWY_DYNAMIC_DISPATCH(embedding_impl)(threads, args);
}
void head_norm(ThreadPool& threads, const HeadNormArgs& args) {
  require_plain_floats(args.weight.dtype, "head_norm", "weight");
  HWY_DYNAMIC_DISPATCH(head_norm_impl)(threads, args);
}
void residual_add(ThreadPool& threads, const ResidualAddArgs& args) {
  HWY_DYNAMIC_DISPATCH(residual_add_impl)(threads, args);
}
void soft_cap(ThreadPool& threads, const SoftCapArgs& args) { HWY_DYNAMIC_DISPATCH(soft_cap_impl)(threads, args); }
void silu_mul(ThreadPool& threads, const SiluMulArgs& args) { HWY_DYNAMIC_DISPATCH(silu_mul_impl)(threads, args); }

}  // namespace dculab::kernels::cpu
#endif
