#include "engine/executors/mtp_layer.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace dculab::engine {

MtpLayer::MtpLayer(MtpWeights weights, const KvCacheOptions& kv_cache,
                   std::shared_ptr<kernels::cpu::ThreadPool> threads)
    : enorm_(weights.enorm),
      hnorm_(weights.hnorm),
      eh_proj_(weights.eh_proj),
      executor_(std::move(weights.layer), kv_cache, std::move(threads)) {}

// Norms `rows` into their half of both_.
void MtpLayer::normalize(const kernels::WeightView& weight, std::span<const float> rows, std::size_t first_column) {
  const auto columns = static_cast<std::size_t>(shape().hidden_size);
  rows_.assign(rows.begin(), rows.end());
  normed_.resize(rows_.size());
  const std::size_t count = rows_.size() / columns;
  kernels::cpu::rms_norm(executor_.threads(), {.x = nullptr,
                                               .residual = rows_.data(),
                                               .weight = weight,
                                               .out = normed_.data(),
                                               .num_tokens = static_cast<int>(count),
                                               .width = shape().hidden_size,
                                               .epsilon = static_cast<float>(shape().norm_eps)});
  for (std::size_t row = 0; row < count; ++row)
    std::copy_n(normed_.begin() + static_cast<std::ptrdiff_t>(row * columns), columns,
                both_.begin() + static_cast<std::ptrdiff_t>(row * 2 * columns + first_column));
}

void MtpLayer::run(const StepPlan& plan, std::span<const float> hidden) {
  executor_.begin(plan);
  state_ = executor_.hidden_state();  // the embeddings
  both_.resize(2 * hidden.size());
  normalize(enorm_, state_.residual, 0);
  normalize(hnorm_, hidden, static_cast<std::size_t>(shape().hidden_size));
  kernels::MatmulArgs product;
  product.x = both_.data();
  product.weights[0] = eh_proj_;
  product.y = state_.residual.data();
  product.m = static_cast<int>(hidden.size()) / shape().hidden_size;
  product.k = 2 * shape().hidden_size;
  kernels::cpu::matmul(executor_.threads(), workspace_, product);
  executor_.set_hidden_state(state_);
  executor_.run_layer(plan, 0);
  state_ = executor_.hidden_state();
  hidden_.resize(hidden.size());
  std::ranges::transform(state_.residual, state_.projected, hidden_.begin(), std::plus<>());
  executor_.finish(plan);
}

std::span<const float> MtpLayer::hidden(int token) const {
  const auto columns = static_cast<std::size_t>(executor_.shape().hidden_size);
  return std::span(hidden_).subspan(static_cast<std::size_t>(token) * columns, columns);
}

}  // namespace dculab::engine
