#include "engine/executors/gpu_draft_heads.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "engine/checkpoint/stored_values.hpp"

namespace dculab::engine {
namespace {

constexpr int kRowsAtOnce = 32;   // hidden states that are guessed after at once
constexpr int kMostGuesses = 64;  // of TopK
constexpr int kColumnsMultiple = 8;

[[nodiscard]] std::size_t value_bytes_of(Dtype dtype) { return static_cast<std::size_t>(bits(dtype)) / 8; }

}  // namespace

GpuDraftHeads::GpuDraftHeads(std::shared_ptr<kernels::gpu::Device> device, const MedusaWeights& weights,
                             Dtype activation)
    : device_(std::move(device)),
      activation_(activation),
      hidden_size_(weights.hidden_size),
      num_rows_(weights.num_rows()),
      token_map_(weights.token_map) {
  if (hidden_size_ % kColumnsMultiple != 0)
    throw InputError("hidden_size " + std::to_string(hidden_size_) + " of the Medusa heads is not supported: " +
                     "GPU kernels need a multiple of " + std::to_string(kColumnsMultiple));
  const auto memory = [&](std::size_t values, Dtype dtype) {
    return DeviceMemory(device_, kRowsAtOnce * values * value_bytes_of(dtype));
  };
  const auto hidden = static_cast<std::size_t>(hidden_size_);
  hidden_ = memory(hidden, Dtype::f32);
  state_ = memory(hidden, Dtype::f32);
  input_ = memory(hidden, activation_);
  silu_ = memory(hidden, activation_);
  logits_ = memory(static_cast<std::size_t>(num_rows_), Dtype::f32);
  values_ = memory(kMostGuesses, Dtype::f32);
  indices_ = memory(weights.heads.size() * kMostGuesses, Dtype::f32);
  std::vector<std::byte> ones(kRowsAtOnce * 2 * hidden * value_bytes_of(activation_));
  narrow(std::vector<float>(kRowsAtOnce * 2 * hidden, 1.0F), activation_, ones.data());
  gate_up_ = uploaded(ones.data(), ones.size());
  std::map<const void*, const Matrix*> known;
  for (const MedusaHead& head : weights.heads) {
    const Matrix*& lm_head = known[head.lm_head.data];
    if (lm_head == nullptr) lm_head = lm_heads_.emplace_back(std::make_unique<Matrix>(upload(head.lm_head, {}))).get();
    heads_.push_back({.layers = {}, .lm_head = lm_head});
    for (std::size_t layer = 0; layer < head.layers.size(); ++layer)
      heads_.back().layers.push_back(upload(head.layers[layer], head.biases[layer]));
  }
}

int GpuDraftHeads::most_guesses() const { return std::min(num_rows_, kMostGuesses); }

DeviceMemory GpuDraftHeads::uploaded(const void* values, std::size_t bytes) {
  DeviceMemory memory(device_, bytes);
  device_->upload(memory.as(), values, bytes);
  device_->synchronize();
  return memory;
}

GpuDraftHeads::Matrix GpuDraftHeads::upload(const kernels::WeightView& matrix, const kernels::WeightView& bias) {
  const auto rows = static_cast<std::size_t>(matrix.rows);
  Matrix result{
      .values = uploaded(matrix.data, rows * static_cast<std::size_t>(hidden_size_) * value_bytes_of(matrix.dtype)),
      .bias = {},
      .dtype = matrix.dtype,
      .rows = matrix.rows};
  if (bias.data != nullptr) result.bias = uploaded(bias.data, rows * sizeof(float));
  return result;
}

void GpuDraftHeads::multiply(const Matrix& matrix, const DeviceMemory& x, kernels::gpu::Output y, int rows,
                             int y_stride) {
  device_->matmul({.x = {x.as(), activation_},
                   .w = {matrix.values.as(), matrix.dtype},
                   .y = y,
                   .m = rows,
                   .n = matrix.rows,
                   .k = hidden_size_,
                   .y_stride = y_stride,
                   .bias = matrix.bias.as<float>()});
}

void GpuDraftHeads::run(const Head& head, int rows) {
  const auto count = std::int64_t{rows} * hidden_size_;
  device_->copy(state_.as(), hidden_.as(), static_cast<std::size_t>(count) * sizeof(float));
  const auto add = [&](kernels::gpu::Input x) {
    device_->residual_add({.x = x, .residual = state_.as<float>(), .out = {input_.as(), activation_}, .count = count});
  };
  add({nullptr, activation_});
  for (const Matrix& layer : head.layers) {
    multiply(layer, input_, {gate_up_.as(), activation_}, rows, 2 * hidden_size_);
    device_->silu_and_mul({.gate_up = {gate_up_.as(), activation_},
                           .out = {silu_.as(), activation_},
                           .num_tokens = rows,
                           .width = hidden_size_});
    add({silu_.as(), activation_});
  }
  multiply(*head.lm_head, input_, {logits_.as(), Dtype::f32}, rows, num_rows_);
}

std::span<const TokenId> GpuDraftHeads::guess(std::span<const float> hidden, int width) {
  const auto columns = static_cast<std::size_t>(hidden_size_);
  const std::size_t rows = hidden.size() / columns, of_row = heads_.size() * static_cast<std::size_t>(width);
  guesses_.resize(rows * of_row);
  for (std::size_t first = 0; first < rows; first += kRowsAtOnce) {
    const std::size_t count = std::min<std::size_t>(kRowsAtOnce, rows - first);
    guess_rows(hidden.subspan(first * columns, count * columns), width,
               std::span(guesses_).subspan(first * of_row, count * of_row));
  }
  return guesses_;
}

void GpuDraftHeads::guess_rows(std::span<const float> hidden, int width, std::span<TokenId> guesses) {
  const std::size_t rows = hidden.size() / static_cast<std::size_t>(hidden_size_),
                    of_head = rows * static_cast<std::size_t>(width);
  device_->upload(hidden_.as(), hidden.data(), hidden.size_bytes());
  for (std::size_t head = 0; head < heads_.size(); ++head) {
    run(heads_[head], static_cast<int>(rows));
    device_->top_k({.x = {logits_.as(), Dtype::f32},
                    .values = values_.as<float>(),
                    .indices = indices_.as<std::int32_t>() + head * of_head,
                    .rows = static_cast<int>(rows),
                    .width = num_rows_,
                    .k = width});
  }
  indices_on_host_.resize(heads_.size() * of_head);
  device_->download(indices_on_host_.data(), indices_.as(), indices_on_host_.size() * sizeof(TokenId));
  device_->synchronize();
  const auto guesses_of_row = static_cast<std::size_t>(width);
  for (std::size_t head = 0; head < heads_.size(); ++head)
    for (std::size_t i = 0; i < of_head; ++i) {
      const auto index = static_cast<std::size_t>(indices_on_host_[head * of_head + i]);
      const std::size_t row = i / guesses_of_row, rank = i % guesses_of_row;
      guesses[(row * heads_.size() + head) * guesses_of_row + rank] =
          token_map_.empty() ? static_cast<TokenId>(index) : token_map_[index];
    }
}

}  // namespace dculab::engine
