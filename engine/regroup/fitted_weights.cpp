#include "engine/regroup/fitted_weights.hpp"

#include <Eigen/Core>
#include <Eigen/QR>

#include "engine/regroup/head_metrics.hpp"

namespace dculab::engine {
namespace {

using ConstMatrix = Eigen::Map<const Eigen::MatrixXd>;

// With RoPE the phase of Q against K is even, and so each plane weighs alike in both of its directions.
void forget_phases(HeadMetrics& metrics, int head_dim) {
  for (std::vector<double>& values : metrics) {
    Eigen::Map<Eigen::MatrixXd> metric(values.data(), head_dim, head_dim);
    Eigen::VectorXd weights = metric.diagonal();
    for (int x = 0, y = head_dim / 2; y < head_dim; ++x, ++y) weights[x] = weights[y] = (weights[x] + weights[y]) / 2;
    metric = weights.asDiagonal();
  }
}

// a [heads, heads], b [heads] of: sum over h of tr(M_h E[(a_h - s)(a_h - s)^T]) = w^T a w - 2 w . b + rest
void fit(const HeadMetrics& metrics, const ConstMatrix& moment, int head_dim, const std::vector<int>& group,
         std::vector<double>& factors) {
  const auto count = static_cast<Eigen::Index>(group.size());
  Eigen::MatrixXd metric_sum = Eigen::MatrixXd::Zero(head_dim, head_dim);
  const auto metric_of = [&](int head) {
    return ConstMatrix(metrics[static_cast<std::size_t>(head)].data(), head_dim, head_dim);
  };
  const auto block = [&](int a, int b) { return moment.block(a * head_dim, b * head_dim, head_dim, head_dim); };
  for (const int head : group) metric_sum += metric_of(head);
  Eigen::MatrixXd quadratic(count, count);
  Eigen::VectorXd linear = Eigen::VectorXd::Zero(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const int head = group[static_cast<std::size_t>(i)];
    for (Eigen::Index j = 0; j < count; ++j)
      quadratic(i, j) = metric_sum.cwiseProduct(block(head, group[static_cast<std::size_t>(j)])).sum();
    for (const int other : group) linear[i] += metric_of(other).cwiseProduct(block(other, head)).sum();
  }
  quadratic = (quadratic + quadratic.transpose()).eval() / 2;
  const Eigen::VectorXd solution = quadratic.completeOrthogonalDecomposition().solve(linear);
  for (Eigen::Index i = 0; i < count; ++i)
    factors[static_cast<std::size_t>(group[static_cast<std::size_t>(i)])] = solution[i];
}

}  // namespace

HeadFactors fitted_factors(const ModelShape& shape, const HeadMoments& moments, const kernels::WeightView& o_proj,
                           const HeadGroups& groups) {
  const Heads heads = shape.heads();
  HeadMetrics queries = query_metrics(shape, moments);
  if (!shape.has_alibi()) forget_phases(queries, heads.head_dim);
  const HeadMetrics outputs = output_metrics(shape, o_proj);
  const ConstMatrix k(moments.k.data(), heads.kv_width(), heads.kv_width());
  const ConstMatrix v(moments.v.data(), heads.kv_width(), heads.kv_width());
  HeadFactors factors{std::vector<double>(static_cast<std::size_t>(heads.num_key_value_heads), 1.0), {}};
  factors.v = factors.k;
  for (const std::vector<int>& group : groups) {
    if (group.size() < 2) continue;
    fit(queries, k, heads.head_dim, group, factors.k);
    fit(outputs, v, heads.head_dim, group, factors.v);
  }
  return factors;
}

}  // namespace dculab::engine
