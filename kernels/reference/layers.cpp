// The element-wise and row-wise kernels of a layer.
#include <cmath>
#include <cstddef>
#include <numbers>

#include "kernels/reference/reference_kernels.hpp"
#include "kernels/reference/stored_value.hpp"

namespace dculab::kernels::reference {
namespace {

// The factors of x are written so that nothing cancels far below zero: 1 + erf(a) = erfc(-a),
// (1 + tanh(a)) / 2 = 1 / (1 + exp(-2 a)).
double gelu(double x, GeluKind kind) {
  if (kind == GeluKind::erf) return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
  const double angle = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return x / (1.0 + std::exp(-2 * angle));
}

}  // namespace

void rms_norm(const RmsNormArgs& args) {
  const auto width = static_cast<std::size_t>(args.width);
  for (std::size_t token = 0; token < static_cast<std::size_t>(args.num_tokens); ++token) {
    float* residual = args.residual + token * width;
    if (args.x != nullptr) {
      for (std::size_t i = 0; i < width; ++i) residual[i] += args.x[token * width + i];
    }
    double squares = 0;
    for (std::size_t i = 0; i < width; ++i) squares += double{residual[i]} * residual[i];
    const double scale = 1.0 / std::sqrt(squares / args.width + args.epsilon);
    for (std::size_t i = 0; i < width; ++i) {
      args.out[token * width + i] = static_cast<float>(
          residual[i] * scale * (load_value(args.weight.data, args.weight.dtype, i) + args.weight_offset));
    }
  }
}

void head_norm(const HeadNormArgs& args) {
  for (int token = 0; token < args.num_tokens; ++token)
    for (int head = 0; head < args.num_heads; ++head) {
      float* const x = args.x + token * args.stride + std::ptrdiff_t{head} * args.head_dim;
      double squares = 0;
      for (int i = 0; i < args.head_dim; ++i) squares += double{x[i]} * x[i];
      const double scale = 1.0 / std::sqrt(squares / args.head_dim + args.epsilon);
      for (int i = 0; i < args.head_dim; ++i) {
        const double weight = load_value(args.weight.data, args.weight.dtype, static_cast<std::size_t>(i));
        x[i] = static_cast<float>(x[i] * scale * (weight + args.weight_offset));
      }
    }
}

void residual_add(const ResidualAddArgs& args) {
  for (std::int64_t i = 0; i < args.count; ++i) {
    if (args.x != nullptr) args.residual[i] += args.x[i];
    args.out[i] = args.residual[i];
  }
}

void soft_cap(const SoftCapArgs& args) {
  for (std::int64_t i = 0; i < args.count; ++i)
    args.x[i] = static_cast<float>(args.cap * std::tanh(double{args.x[i]} / args.cap));
}

void layer_norm(const LayerNormArgs& args) {
  for (int token = 0; token < args.num_tokens; ++token) {
    const std::ptrdiff_t offset = std::ptrdiff_t{token} * args.width;
    for (const float* added : args.added) {
      if (args.residual == nullptr || added == nullptr) continue;
      for (int i = 0; i < args.width; ++i) args.residual[offset + i] += added[offset + i];
    }
    const float* x = (args.residual != nullptr ? args.residual : args.x) + offset;
    double mean = 0, variance = 0;
    for (int i = 0; i < args.width; ++i) mean += x[i];
    mean /= args.width;
    for (int i = 0; i < args.width; ++i) variance += (x[i] - mean) * (x[i] - mean);
    const double scale = 1.0 / std::sqrt(variance / args.width + args.epsilon);
    for (int i = 0; i < args.width; ++i) {
      const double bias = args.bias == nullptr ? 0.0 : args.bias[i];
      args.out[offset + i] = static_cast<float>((x[i] - mean) * scale * args.weight[i] + bias);
    }
  }
}

void embedding(const EmbeddingArgs& args) {
  const auto width = static_cast<std::size_t>(args.width);
  for (std::size_t token = 0; token < static_cast<std::size_t>(args.num_tokens); ++token) {
    const std::size_t row = static_cast<std::size_t>(args.token_ids[token]) * width;
    for (std::size_t i = 0; i < width; ++i) {
      args.out[token * width + i] =
          static_cast<float>(load_value(args.table.data, args.table.dtype, row + i) * args.scale);
    }
  }
}

void silu_mul(const SiluMulArgs& args) {
  const auto width = static_cast<std::size_t>(args.width);
  for (std::size_t token = 0; token < static_cast<std::size_t>(args.num_tokens); ++token) {
    const float* gate = args.gate_up + token * 2 * width;
    const float* up = gate + width;
    for (std::size_t i = 0; i < width; ++i) {
      args.out[token * width + i] = static_cast<float>(gate[i] / (1.0 + std::exp(-double{gate[i]})) * up[i]);
    }
  }
}

void gelu_mul(const GeluMulArgs& args) {
  for (int token = 0; token < args.num_tokens; ++token)
    for (int i = 0; i < args.width; ++i) {
      const float* gate = args.gate_up + std::ptrdiff_t{token} * 2 * args.width + i;
      args.out[std::ptrdiff_t{token} * args.width + i] =
          static_cast<float>(gelu(gate[0], args.kind) * gate[args.width]);
    }
}

void gelu(const GeluArgs& args) {
  for (std::int64_t i = 0; i < args.count; ++i) args.out[i] = static_cast<float>(gelu(args.x[i], args.kind));
}

}  // namespace dculab::kernels::reference
