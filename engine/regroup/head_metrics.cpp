#include "engine/regroup/head_metrics.hpp"

#include <Eigen/Core>

#include "engine/checkpoint/stored_values.hpp"

namespace dculab::engine {
namespace {

using MetricMap = Eigen::Map<Eigen::MatrixXd>;

HeadMetrics no_metrics(const Heads& heads) {
  const auto size = static_cast<std::size_t>(heads.head_dim);
  return HeadMetrics(static_cast<std::size_t>(heads.num_key_value_heads), std::vector<double>(size * size));
}

MetricMap metric_of_query(HeadMetrics& metrics, const Heads& heads, int query_head) {
  return {metrics[static_cast<std::size_t>(query_head / heads.group_size())].data(), heads.head_dim, heads.head_dim};
}

}  // namespace

HeadMetrics output_metrics(const ModelShape& shape, const kernels::WeightView& o_proj) {
  const Heads heads = shape.heads();
  Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> outputs(shape.hidden_size, heads.query_width());
  widen(o_proj.data, o_proj.dtype, {outputs.data(), static_cast<std::size_t>(outputs.size())});
  HeadMetrics metrics = no_metrics(heads);
  for (int head = 0; head < heads.num_attention_heads; ++head) {
    const Eigen::MatrixXd columns = outputs.middleCols(head * heads.head_dim, heads.head_dim).cast<double>();
    metric_of_query(metrics, heads, head) += columns.transpose() * columns;
  }
  return metrics;
}

HeadMetrics query_metrics(const ModelShape& shape, const HeadMoments& moments) {
  const Heads heads = shape.heads();
  const Eigen::Index size = heads.head_dim;
  HeadMetrics metrics = no_metrics(heads);
  for (int head = 0; head < heads.num_attention_heads; ++head)
    metric_of_query(metrics, heads, head) +=
        Eigen::Map<const Eigen::MatrixXd>(moments.q.data() + head * size * size, size, size);
  return metrics;
}

}  // namespace dculab::engine
