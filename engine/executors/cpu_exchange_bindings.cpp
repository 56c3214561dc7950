// What an executor that has a part of a model exchanges with those that have the others.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <numeric>

#include "engine/checkpoint/stored_values.hpp"
#include "engine/executors/cpu_executor.hpp"
#include "engine/executors/plan_walk.hpp"
#include "kernels/cpu/for_each_token.hpp"

namespace dculab::engine {

bool CpuExecutor::has_expert_part(const Op& op) const {
  if (!place_.is_divided() || op.stage != Stage::layer) return false;
  const auto& experts = layer_of(op, weights_.shape).experts;
  return experts && experts->part;
}

bool CpuExecutor::is_of_own_tokens(const Op& op) const {
  if (!has_expert_part(op)) return false;
  switch (op.kind) {
    case OpKind::matmul:
      return op.weight == WeightSlot::router || op.weight == WeightSlot::up_proj || op.weight == WeightSlot::down_proj;
    case OpKind::activation_mul:
      return op.input == Buffer::up;
    case OpKind::route_tokens:
    case OpKind::combine_experts:
      return true;
    default:
      return false;
  }
}

OwnTokens CpuExecutor::tokens_of(const Op& op) const {
  if (!is_of_own_tokens(op)) return {0, rows_of(op)};
  return own_tokens(inputs_.num_tokens(), place_.rank(), place_.ranks());
}

// What all tokens of the step have rows in; other buffers hold those of the own tokens alone.
float* CpuExecutor::values(Buffer buffer, const OwnTokens& tokens) {
  const bool is_of_all = buffer == Buffer::residual || buffer == Buffer::normed || buffer == Buffer::projected ||
                         buffer == Buffer::mlp_projected;
  return values(buffer) + (is_of_all ? std::ptrdiff_t{tokens.first} * weights_.shape.hidden_size : 0);
}

// A plan counts the tokens of a rank alike on all of them, and what experts get as what is expected.
void CpuExecutor::require_rows(const Op& op, int rows) const {
  require(op.m == rows || has_expert_part(op), op, "has another shape");
}

// A token of another rank's part of the vocabulary is a row of zeros here: the sum over the ranks is the embedding.
void CpuExecutor::execute_partial_embedding(const Op& op) {
  const int width = weights_.shape.hidden_size, first = place_.rank() * weights_.shape.vocab_size;
  const auto is_here = [&](TokenId token) { return token >= first && token < first + weights_.shape.vocab_size; };
  part_tokens_.resize(inputs_.token_ids().size());
  std::ranges::transform(inputs_.token_ids(), part_tokens_.begin(),
                         [&](TokenId token) { return is_here(token) ? token - first : 0; });
  kernels::cpu::embedding(threads_, {.token_ids = part_tokens_.data(),
                                     .table = weights_.outer[WeightSlot::embed_tokens].weights[0],
                                     .out = values(op.output),
                                     .num_tokens = inputs_.num_tokens(),
                                     .width = width,
                                     .scale = static_cast<float>(weights_.shape.embedding_scale)});
  for (std::size_t token = 0; token < part_tokens_.size(); ++token)
    if (!is_here(inputs_.token_ids()[token]))
      std::fill_n(values(op.output) + static_cast<std::ptrdiff_t>(token) * width, width, 0.0F);
}

void CpuExecutor::gather_own_tokens(const Op& op) {
  const int tokens = inputs_.num_tokens();
  const std::size_t row = static_cast<std::size_t>(op.n) * sizeof(float);
  std::vector<std::size_t> sizes;
  for (int rank = 0; rank < place_.ranks(); ++rank)
    sizes.push_back(static_cast<std::size_t>(own_tokens(tokens, rank, place_.ranks()).count) * row);
  const OwnTokens own = own_tokens(tokens, place_.rank(), place_.ranks());
  float* const all = values(op.output);
  const std::span<const float> mine(all + std::ptrdiff_t{own.first} * op.n,
                                    static_cast<std::size_t>(own.count) * static_cast<std::size_t>(op.n));
  place_.communicator->all_gather(std::as_bytes(mine), sizes, reinterpret_cast<std::byte*>(all));
}

void CpuExecutor::gather_logits(const Op& op) {
  const auto rows = static_cast<std::size_t>(rows_of(op)), width = static_cast<std::size_t>(op.n);
  const auto columns = static_cast<std::size_t>(place_.vocab_size);
  if (gathered_logits_.size() < rows * columns) gathered_logits_.resize(rows * columns);
  place_.communicator->all_gather_columns({values(op.output), rows * width}, width, columns, gathered_logits_.data());
}

void CpuExecutor::sum_squares(const Op& op) {
  const Heads& heads = layer_of(op, weights_.shape).gqa().heads;
  const int stride = heads.query_width() + 2 * heads.kv_width();
  const int tokens = inputs_.num_tokens();
  square_sums_.resize(2 * static_cast<std::size_t>(tokens));
  const auto sum_of = [](const float* x, int count) {
    return std::transform_reduce(x, x + count, 0.0F, std::plus<>(), [](float value) { return value * value; });
  };
  kernels::cpu::for_each_token(threads_, tokens, stride, [&](int token) {
    const float* const row = values(op.input) + std::ptrdiff_t{token} * stride;
    float* const sums = square_sums_.data() + 2 * std::ptrdiff_t{token};
    sums[0] = sum_of(row, heads.query_width());
    sums[1] = sum_of(row + heads.query_width(), heads.kv_width());
  });
}

// KV heads that are on several ranks are counted on each, and so are their values.
void CpuExecutor::norm_by_sums(const Op& op, int layer) {
  const Heads& heads = layer_of(op, weights_.shape).gqa().heads;
  const SlotWeights& bound = weights_.in(WeightSlot::qk_norm, layer);
  const int stride = heads.query_width() + 2 * heads.kv_width();
  const float offset = weights_.shape.unit_offset_norms ? 1.0F : 0.0F;
  const auto norm = [&](std::size_t part, int first, int count) {
    std::vector<float> gains(static_cast<std::size_t>(count));
    widen(static_cast<const std::byte*>(bound.weights[part].data), bound.weights[part].dtype, gains);
    kernels::cpu::for_each_token(threads_, inputs_.num_tokens(), count, [&](int token) {
      const float mean = square_sums_[2 * static_cast<std::size_t>(token) + part] /
                         static_cast<float>(std::int64_t{count} * place_.ranks());
      const float scale = 1.0F / std::sqrt(mean + static_cast<float>(weights_.shape.norm_eps));
      float* const row = values(Buffer::qkv) + std::ptrdiff_t{token} * stride + first;
      for (std::size_t i = 0; i < gains.size(); ++i) row[i] *= scale * (gains[i] + offset);
    });
  };
  norm(kQ, 0, heads.query_width());
  norm(kK, heads.query_width(), heads.kv_width());
}

void CpuExecutor::execute_collective(const Op& op, int layer) {
  require(place_.is_divided() && op.devices == place_.ranks(), op, "is for several devices: the engine runs on one");
  if (op.output == Buffer::none) {  // of a norm's sums
    require(op.m == inputs_.num_tokens() && op.n == 2, op, "names no buffer");
    place_.communicator->all_reduce(square_sums_);
    norm_by_sums(op, layer);
  } else if (op.kind == OpKind::all_gather) {
    op.output == Buffer::logits ? gather_logits(op) : gather_own_tokens(op);
  } else {
    require(op.m == rows_of(op) && op.n == width(weights_.shape, op.output), op, "has another shape");
    place_.communicator->all_reduce({values(op.output), static_cast<std::size_t>(op.m * op.n)});
  }
  charge_waiting();
}

void CpuExecutor::execute_token_exchange(const Op& op, int layer) {
  require(has_expert_part(op) && op.devices == place_.ranks(), op, "is for several devices: the engine runs on one");
  const Experts& experts = *layer_of(op, weights_.shape).experts;
  Communicator& others = *place_.communicator;
  if (op.kind == OpKind::dispatch_tokens) {
    const OwnTokens own = own_tokens(inputs_.num_tokens(), place_.rank(), place_.ranks());
    const auto choices = static_cast<std::size_t>(own.count) * static_cast<std::size_t>(experts.num_experts_per_tok);
    expert_exchange_.dispatch(others, inputs_.num_tokens(), experts.num_experts, experts.num_experts_per_tok,
                              {routing_.choices().experts, choices}, values(Buffer::normed, own),
                              weights_.shape.hidden_size);
    routing_.count(layer, experts, expert_exchange_.choices());
  } else {
    expert_exchange_.give_back(others, values(Buffer::expert_output));
  }
  charge_waiting();
}

// What the op before took longer elsewhere is its own: an exchange begins when the last rank does.
void CpuExecutor::charge_waiting() {
  const Seconds waited = place_.communicator->take_waited();
  if (!charged_op_) return;
  op_durations_[*charged_op_] += waited;
  charged_until_ +=
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(waited.value()));
}

}  // namespace dculab::engine
