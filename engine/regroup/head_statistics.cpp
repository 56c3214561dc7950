#include "engine/regroup/head_statistics.hpp"

#include <algorithm>
#include <cmath>

#include "engine/checkpoint/stored_values.hpp"
#include "engine/regroup/svd_merge.hpp"

namespace dculab::engine {
namespace {

double dot(const float* a, const float* b, int size) {
  double sum = 0;
  for (int i = 0; i < size; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// sum over i, j of row[i] * moment[i, j] * row[j]
double quadratic_form(const float* row, const double* moment, int size) {
  double sum = 0;
  for (int i = 0; i < size; ++i) {
    double inner = 0;
    for (int j = 0; j < size; ++j) inner += moment[i * size + j] * static_cast<double>(row[j]);
    sum += static_cast<double>(row[i]) * inner;
  }
  return sum;
}

bool all_finite(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
}

}  // namespace

HeadStatistics::HeadStatistics(const ModelShape& shape, SecondMoments moments)
    : shape_(shape), norms_(static_cast<std::size_t>(shape.heads().num_key_value_heads)) {
  for (PairSums& sums : sums_)
    for (std::vector<double>* values : {&sums.dot, &sums.cosine, &sums.norm_ratio})
      values->resize(norms_.size() * norms_.size());
  const auto head_dim = static_cast<std::size_t>(shape.heads().head_dim);
  second_moment_.resize(static_cast<std::size_t>(shape.heads().num_attention_heads) * head_dim * head_dim);
  if (moments == SecondMoments::collect) moments_.emplace(shape);
}

std::size_t HeadStatistics::index(int a, int b) const {
  return static_cast<std::size_t>(a) * norms_.size() + static_cast<std::size_t>(b);
}

void HeadStatistics::add_qkv(std::span<const float> qkv) {
  const int width = shape_.heads().query_width() + 2 * shape_.heads().kv_width();
  const auto tokens = static_cast<std::int64_t>(qkv.size()) / width;
  for (std::int64_t token = 0; token < tokens; ++token) {
    const float* const q = qkv.data() + token * width;
    const float* const k = q + shape_.heads().query_width();
    add_heads(sums_[kQueries], q, shape_.heads().group_size() * shape_.heads().head_dim);
    add_heads(sums_[kKeys], k, shape_.heads().head_dim);
    add_heads(sums_[kValues], k + shape_.heads().kv_width(), shape_.heads().head_dim);
  }
  num_tokens_ += tokens;
  if (moments_) moments_->add_qkv(qkv);
}

void HeadStatistics::add_heads(PairSums& sums, const float* heads, int size) {
  for (int a = 0; a < shape_.heads().num_key_value_heads; ++a) {
    const float* const head = heads + a * size;
    const double norm = std::sqrt(dot(head, head, size));
    norms_[static_cast<std::size_t>(a)] = norm;
    sums.dot[index(a, a)] += norm * norm;
    for (int b = 0; b < a; ++b) {
      const double product = dot(head, heads + b * size, size);
      const double other = norms_[static_cast<std::size_t>(b)];
      sums.dot[index(a, b)] += product;
      // Two heads that are zero are alike; one that is has no direction.
      if (norm * other != 0) sums.cosine[index(a, b)] += product / (norm * other);
      const double larger = std::max(norm, other);
      sums.norm_ratio[index(a, b)] += larger == 0 ? 1.0 : std::min(norm, other) / larger;
    }
  }
}

void HeadStatistics::add_attention(std::span<const float> attention) {
  const auto size = static_cast<std::size_t>(shape_.heads().head_dim);
  const auto heads = static_cast<std::size_t>(shape_.heads().num_attention_heads);
  for (std::size_t start = 0; start + heads * size <= attention.size(); start += heads * size) {
    add_heads(sums_[kOutputs], attention.data() + start, shape_.heads().group_size() * shape_.heads().head_dim);
    for (std::size_t head = 0; head < heads; ++head) {
      const float* const values = attention.data() + start + head * size;
      double* const moment = second_moment_.data() + head * size * size;
      for (std::size_t i = 0; i < size; ++i)
        for (std::size_t j = 0; j < size; ++j)
          moment[i * size + j] += static_cast<double>(values[i]) * static_cast<double>(values[j]);
    }
  }
}

double HeadStatistics::similarity_of(const PairSums& sums, HeadSimilarity kind, int a, int b) const {
  const auto tokens = static_cast<double>(num_tokens_);
  if (kind == HeadSimilarity::cosine) return sums.cosine[index(a, b)] / tokens;
  if (kind == HeadSimilarity::norm) return sums.norm_ratio[index(a, b)] / tokens;
  double energy = 0;
  for (int head = 0; head < shape_.heads().num_key_value_heads; ++head) energy += sums.dot[index(head, head)];
  energy /= shape_.heads().num_key_value_heads;
  const double distance = sums.dot[index(a, a)] + sums.dot[index(b, b)] - 2 * sums.dot[index(a, b)];
  return energy == 0 ? 1.0 : 1 - distance / (2 * energy);
}

SimilarityMatrix HeadStatistics::similarity(HeadSimilarity kind, const kernels::WeightView& o_proj,
                                            ComparedHeads compared) const {
  if (kind == HeadSimilarity::svd) return svd_similarity(shape_, *moments_, o_proj);
  SimilarityMatrix result(shape_.heads().num_key_value_heads);
  const auto of_two = [&](int a, int b) {
    if (compared == ComparedHeads::query) return similarity_of(sums_[kQueries], kind, a, b);
    if (compared == ComparedHeads::output) return similarity_of(sums_[kOutputs], kind, a, b);
    return (similarity_of(sums_[kKeys], kind, a, b) + similarity_of(sums_[kValues], kind, a, b)) / 2;
  };
  for (int a = 0; a < result.size(); ++a) {
    result.set(a, a, 1.0);
    for (int b = 0; b < a; ++b) result.set(a, b, of_two(a, b));
  }
  return result;
}

SimilarityMatrix HeadStatistics::products(const PairSums& sums) const {
  SimilarityMatrix result(shape_.heads().num_key_value_heads);
  for (int a = 0; a < result.size(); ++a)
    for (int b = 0; b <= a; ++b) result.set(a, b, sums.dot[index(a, b)]);
  return result;
}

std::vector<double> HeadStatistics::importance(const kernels::WeightView& o_proj) const {
  const auto size = static_cast<std::size_t>(shape_.heads().head_dim);
  const auto width = static_cast<std::size_t>(shape_.heads().query_width());
  std::vector<float> columns(static_cast<std::size_t>(o_proj.rows) * width);
  widen(o_proj.data, o_proj.dtype, columns);
  std::vector<double> squares(norms_.size());
  for (int head = 0; head < shape_.heads().num_attention_heads; ++head) {
    const auto at = static_cast<std::size_t>(head);
    double& sum = squares[static_cast<std::size_t>(head / shape_.heads().group_size())];
    for (std::size_t row = 0; row < static_cast<std::size_t>(o_proj.rows); ++row)
      sum += quadratic_form(columns.data() + row * width + at * size, second_moment_.data() + at * size * size,
                            shape_.heads().head_dim);
  }
  for (double& value : squares) value = std::sqrt(std::max(0.0, value) / static_cast<double>(num_tokens_));
  return squares;
}

bool HeadStatistics::is_finite() const {
  return all_finite(second_moment_) && (!moments_ || all_finite(moments_->q)) &&
         std::ranges::all_of(sums_, [](const PairSums& sums) { return all_finite(sums.dot); });
}

}  // namespace dculab::engine
