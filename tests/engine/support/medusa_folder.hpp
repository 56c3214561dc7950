// Medusa heads of random values as a folder in vLLM's format, and what they guess in double precision.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/batch.hpp"
#include "engine/checkpoint/safetensors_writer.hpp"
#include "engine/checkpoint/stored_values.hpp"

namespace dculab::engine {

struct MedusaSizes {
  int hidden_size = 64, vocab_size = 96, num_heads = 3, num_hidden_layers = 1;
  int truncated_vocab_size = 0;  // 0: as many rows as tokens
  bool has_bias = false, shares_head = false;
  Dtype dtype = Dtype::f32;
  std::string prefix{};  // of the tensors' names
};

// On disk as long as it lives.
class MedusaFolder {
 public:
  explicit MedusaFolder(const MedusaSizes& sizes)
      : sizes_(sizes), path_(std::filesystem::temp_directory_path() / ("dculab-medusa-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directory(path_);
    fill();
    write_config();
    write_weights();
  }
  ~MedusaFolder() { std::filesystem::remove_all(path_); }
  MedusaFolder(const MedusaFolder&) = delete;
  MedusaFolder& operator=(const MedusaFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] int rows() const {
    return sizes_.truncated_vocab_size > 0 ? sizes_.truncated_vocab_size : sizes_.vocab_size;
  }

  // More members for config.json, each with its comma: ", \"key\": 1".
  void write_config(const std::string& more = "") const {
    std::ofstream(path_ / "config.json") << R"({"model_type": "medusa", "hidden_size": )" << sizes_.hidden_size
                                         << ", \"vocab_size\": " << sizes_.vocab_size
                                         << ", \"num_heads\": " << sizes_.num_heads
                                         << ", \"num_hidden_layers\": " << sizes_.num_hidden_layers
                                         << ", \"truncated_vocab_size\": " << rows()
                                         << ", \"medusa_fc_bias\": " << (sizes_.has_bias ? "true" : "false")
                                         << ", \"original_lm_head\": " << (sizes_.shares_head ? "true" : "false")
                                         << more << "}";
  }

  struct Tensor {
    std::string name;
    std::vector<std::int64_t> shape;
    std::vector<float> values;  // exact in the dtype
  };
  [[nodiscard]] Tensor& tensor(const std::string& name) { return *std::ranges::find(tensors_, name, &Tensor::name); }
  [[nodiscard]] std::vector<std::int64_t>& token_map() { return token_map_; }
  void remove(const std::string& name) {
    std::erase_if(tensors_, [&](const Tensor& each) { return each.name == name; });
  }

  void write_weights() const {
    std::vector<std::vector<std::byte>> stored;
    std::vector<TensorToWrite> written;
    for (const Tensor& each : tensors_) {
      stored.emplace_back(each.values.size() * static_cast<std::size_t>(bits(sizes_.dtype)) / 8);
      narrow(each.values, sizes_.dtype, stored.back().data());
      written.push_back({sizes_.prefix + each.name, dtype_name(), each.shape, {}});
    }
    for (std::size_t i = 0; i < stored.size(); ++i) written[i].bytes = stored[i];
    if (!token_map_.empty())
      written.push_back(
          {"token_map", "I64", {static_cast<std::int64_t>(token_map_.size())}, std::as_bytes(std::span(token_map_))});
    write_safetensors(path_ / "model.safetensors", written);
  }

  // The likeliest tokens of each head, [num_heads][width].
  [[nodiscard]] std::vector<std::vector<TokenId>> guesses(std::span<const float> hidden, int width) {
    std::vector<std::vector<TokenId>> all;
    for (int head = 0; head < sizes_.num_heads; ++head) {
      const std::vector<double> logits = logits_of(head, {hidden.begin(), hidden.end()});
      std::vector<TokenId> order(logits.size());
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, [&](TokenId a, TokenId b) {
        return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
      });
      order.resize(static_cast<std::size_t>(width));
      for (TokenId& token : order)
        if (!token_map_.empty()) token = static_cast<TokenId>(token_map_[static_cast<std::size_t>(token)]);
      all.push_back(order);
    }
    return all;
  }

 private:
  [[nodiscard]] std::string dtype_name() const {
    return sizes_.dtype == Dtype::f32 ? "F32" : sizes_.dtype == Dtype::f16 ? "F16" : "BF16";
  }

  void add(const std::string& name, std::vector<std::int64_t> shape, float scale) {
    std::int64_t count = 1;
    for (const std::int64_t each : shape) count *= each;
    std::normal_distribution<float> draw(0.0F, scale);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& each : values) each = draw(random_);
    std::vector<std::byte> stored(values.size() * sizeof(float));
    narrow(values, sizes_.dtype, stored.data());
    widen(stored.data(), sizes_.dtype, values);
    tensors_.push_back({name, std::move(shape), std::move(values)});
  }

  void fill() {
    const float scale = 1.0F / std::sqrt(static_cast<float>(sizes_.hidden_size));
    for (int head = 0; head < sizes_.num_heads; ++head) {
      for (int layer = 0; layer < sizes_.num_hidden_layers; ++layer) {
        const std::string name = "blocks." + std::to_string(head) + ".layers." + std::to_string(layer) + ".";
        add(name + "weight", {sizes_.hidden_size, sizes_.hidden_size}, scale);
        if (sizes_.has_bias) add(name + "bias", {sizes_.hidden_size}, 0.5F);
      }
      if (head == 0 || !sizes_.shares_head)
        add("lm_heads." + std::to_string(head) + ".weight", {rows(), sizes_.hidden_size}, scale);
    }
    for (int row = 0; row < sizes_.truncated_vocab_size; ++row)  // every token at most once
      token_map_.push_back((5 + 7 * row) % sizes_.vocab_size);
  }

  [[nodiscard]] std::vector<double> times(const Tensor& matrix, const std::vector<double>& x) const {
    std::vector<double> y(static_cast<std::size_t>(matrix.shape[0]));
    for (std::size_t n = 0; n < y.size(); ++n)
      for (std::size_t k = 0; k < x.size(); ++k) y[n] += static_cast<double>(matrix.values[n * x.size() + k]) * x[k];
    return y;
  }

  [[nodiscard]] std::vector<double> logits_of(int head, std::vector<double> x) {
    for (int layer = 0; layer < sizes_.num_hidden_layers; ++layer) {
      const std::string name = "blocks." + std::to_string(head) + ".layers." + std::to_string(layer) + ".";
      std::vector<double> y = times(tensor(name + "weight"), x);
      for (std::size_t i = 0; i < y.size(); ++i) {
        if (sizes_.has_bias) y[i] += static_cast<double>(tensor(name + "bias").values[i]);
        x[i] += y[i] / (1 + std::exp(-y[i]));
      }
    }
    return times(tensor("lm_heads." + std::to_string(sizes_.shares_head ? 0 : head) + ".weight"), x);
  }

  MedusaSizes sizes_;
  std::filesystem::path path_;
  std::mt19937 random_{17};
  std::vector<Tensor> tensors_;
  std::vector<std::int64_t> token_map_;
};

}  // namespace dculab::engine
