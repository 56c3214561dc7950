#include "engine/regroup/head_moments.hpp"

#include <Eigen/Core>

namespace dculab::engine {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Matrix = Eigen::MatrixXd;

// moment [n, n] += rows^T rows of rows [tokens, n]
void add_moment(double* moment, const Matrix& rows) {
  Eigen::Map<Matrix>(moment, rows.cols(), rows.cols()).noalias() += rows.transpose() * rows;
}

std::size_t square(int size) { return static_cast<std::size_t>(size) * static_cast<std::size_t>(size); }

}  // namespace

HeadMoments::HeadMoments(const ModelShape& shape)
    : query_width(shape.heads().query_width()),
      kv_width(shape.heads().kv_width()),
      head_dim(shape.heads().head_dim),
      q(static_cast<std::size_t>(shape.heads().num_attention_heads) * square(head_dim)),
      k(square(kv_width)),
      v(square(kv_width)),
      k_sum(static_cast<std::size_t>(kv_width)) {}

void HeadMoments::add_qkv(std::span<const float> qkv) {
  const Eigen::Index width = query_width + 2 * kv_width;
  const Eigen::Map<const RowMajor> rows(qkv.data(), static_cast<Eigen::Index>(qkv.size()) / width, width);
  for (int head = 0; head * head_dim < query_width; ++head)
    add_moment(q.data() + static_cast<std::size_t>(head) * square(head_dim),
               rows.middleCols(head * head_dim, head_dim).cast<double>());
  const Matrix keys = rows.middleCols(query_width, kv_width).cast<double>();
  add_moment(k.data(), keys);
  Eigen::Map<Eigen::RowVectorXd>(k_sum.data(), kv_width) += keys.colwise().sum();
  add_moment(v.data(), rows.rightCols(kv_width).cast<double>());
  num_tokens += rows.rows();
}

}  // namespace dculab::engine
