#include "engine/regroup/svd_merge.hpp"

#include <Eigen/Eigenvalues>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>
#include <span>
#include <utility>

#include "engine/regroup/group_error.hpp"
#include "engine/regroup/head_metrics.hpp"

namespace dculab::engine {
namespace {

using Eigen::Index;
template <typename Scalar>
using MatrixOf = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;
using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Complex = std::complex<double>;

constexpr double kRankTolerance = 1e-12;  // of a metric's largest eigenvalue: below it a direction has no effect

// The square root of a metric, and its inverse where it has one.
template <typename Scalar>
struct Root {
  explicit Root(const MatrixOf<Scalar>& metric) {
    const Eigen::SelfAdjointEigenSolver<MatrixOf<Scalar>> eigen(metric);
    const double smallest = kRankTolerance * eigen.eigenvalues().maxCoeff();
    const auto of = [&](auto&& function) {
      const Eigen::VectorXd values =
          eigen.eigenvalues().unaryExpr([&](double value) { return value > smallest ? function(value) : 0.0; });
      return MatrixOf<Scalar>(eigen.eigenvectors() * values.template cast<Scalar>().asDiagonal() *
                              eigen.eigenvectors().adjoint());
    };
    root = of([](double value) { return std::sqrt(value); });
    inverse = of([](double value) { return 1 / std::sqrt(value); });
  }

  MatrixOf<Scalar> root, inverse;
};

template <typename Scalar>
struct Maps {
  MatrixOf<Scalar> encode;  // [width, heads * width]
  MatrixOf<Scalar> decode;  // [heads * width, width]
};

// `width` activations of each head, in a row, weighed by the roots of the heads' metrics.
template <typename Scalar>
class WeighedHeads {
 public:
  WeighedHeads(MatrixOf<Scalar> moment, const std::vector<MatrixOf<Scalar>>& metrics)
      : moment_(std::move(moment)), width_(metrics.front().rows()) {
    for (const MatrixOf<Scalar>& metric : metrics) roots_.emplace_back(metric);
    for (Index a = 0; a < heads(); ++a)
      for (Index b = 0; b < heads(); ++b) {
        auto block = moment_.block(a * width_, b * width_, width_, width_);
        block = (root(a).root * block * root(b).root).eval();
      }
  }

  [[nodiscard]] Index heads() const { return static_cast<Index>(roots_.size()); }
  [[nodiscard]] double total() const { return std::real(moment_.trace()); }

  [[nodiscard]] double lost(const std::vector<int>& group) const {
    const MatrixOf<Scalar> moment = moment_of(group);
    const Eigen::SelfAdjointEigenSolver<MatrixOf<Scalar>> eigen(moment, Eigen::EigenvaluesOnly);
    return eigen.eigenvalues().head(moment.rows() - width_).sum();
  }

  [[nodiscard]] Maps<Scalar> maps(const std::vector<int>& group) const {
    const Eigen::SelfAdjointEigenSolver<MatrixOf<Scalar>> eigen(moment_of(group));
    Maps<Scalar> result{eigen.eigenvectors().rightCols(width_).adjoint(), eigen.eigenvectors().rightCols(width_)};
    for (std::size_t i = 0; i < group.size(); ++i) {
      const Index at = static_cast<Index>(i) * width_;
      const Root<Scalar>& head = root(group[i]);
      result.encode.middleCols(at, width_) = (result.encode.middleCols(at, width_) * head.root).eval();
      result.decode.middleRows(at, width_) = (head.inverse * result.decode.middleRows(at, width_)).eval();
    }
    return nearest_to_copying(result);
  }

 private:
  [[nodiscard]] const Root<Scalar>& root(Index head) const { return roots_[static_cast<std::size_t>(head)]; }

  [[nodiscard]] MatrixOf<Scalar> moment_of(const std::vector<int>& group) const {
    const auto size = static_cast<Index>(group.size());
    MatrixOf<Scalar> result(size * width_, size * width_);
    for (Index a = 0; a < size; ++a)
      for (Index b = 0; b < size; ++b)
        result.block(a * width_, b * width_, width_, width_) = moment_.block(
            group[static_cast<std::size_t>(a)] * width_, group[static_cast<std::size_t>(b)] * width_, width_, width_);
    return result;
  }

  // Any invertible T may stand between the maps: decode T^-1 and T encode. This one makes decode^H decode = heads * 1
  // and the sum over heads of decode_h symmetric and positive, both of which hold for copies.
  [[nodiscard]] Maps<Scalar> nearest_to_copying(const Maps<Scalar>& maps) const {
    const Root<Scalar> length(maps.decode.adjoint() * maps.decode);
    const MatrixOf<Scalar> orthogonal = maps.decode * length.inverse;
    MatrixOf<Scalar> sum = MatrixOf<Scalar>::Zero(width_, width_);
    for (Index at = 0; at < orthogonal.rows(); at += width_) sum += orthogonal.middleRows(at, width_);
    const Eigen::JacobiSVD<MatrixOf<Scalar>, Eigen::NoQRPreconditioner> svd(sum,
                                                                            Eigen::ComputeFullU | Eigen::ComputeFullV);
    const MatrixOf<Scalar> turn = svd.matrixV() * svd.matrixU().adjoint();
    const double scale = std::sqrt(static_cast<double>(orthogonal.rows() / width_));
    return {turn.adjoint() * length.root * maps.encode / scale, orthogonal * turn * scale};
  }

  MatrixOf<Scalar> moment_;  // [heads * width, heads * width]
  Index width_;
  std::vector<Root<Scalar>> roots_;  // [heads] of [width, width]
};

// A complex factor of x = value `plane` and y = value `plane` + head_dim / 2, in a map [head_dim, head_dim].
void place(Complex factor, int plane, Eigen::Ref<MatrixOf<double>> map) {
  const Index y = plane + map.rows() / 2;
  map(plane, plane) = map(y, y) = factor.real();
  map(plane, y) = -factor.imag();
  map(y, plane) = factor.imag();
}

std::vector<float> row_major(const MatrixOf<double>& matrix) {
  std::vector<float> values(static_cast<std::size_t>(matrix.size()));
  Eigen::Map<RowMajor>(values.data(), matrix.rows(), matrix.cols()) = matrix.cast<float>();
  return values;
}

using RealHeads = WeighedHeads<double>;
using PlaneHeads = WeighedHeads<Complex>;

std::vector<MatrixOf<double>> matrices(const HeadMetrics& metrics, Index size) {
  std::vector<MatrixOf<double>> result;
  for (const std::vector<double>& metric : metrics)
    result.emplace_back(Eigen::Map<const MatrixOf<double>>(metric.data(), size, size));
  return result;
}

// x + iy of one plane: E[a conj(b)], and of Q, whose phase against K is taken as even, |q|^2.
PlaneHeads plane_heads(const MatrixOf<double>& k, const std::vector<MatrixOf<double>>& queries, int plane) {
  const auto heads = static_cast<Index>(queries.size());
  const Index size = queries.front().rows();
  const Index y = size / 2;
  MatrixOf<Complex> moment(heads, heads);
  for (Index a = 0; a < heads; ++a)
    for (Index b = 0; b < heads; ++b) {
      const auto pair = k.block(a * size + plane, b * size + plane, y + 1, y + 1);
      moment(a, b) = {pair(0, 0) + pair(y, y), pair(y, 0) - pair(0, y)};
    }
  std::vector<MatrixOf<Complex>> metrics;
  for (const MatrixOf<double>& query : queries)
    metrics.push_back(MatrixOf<Complex>::Constant(1, 1, query(plane, plane) + query(plane + y, plane + y)));
  return {std::move(moment), metrics};
}

// The heads of a layer, K and V weighed.
class LayerHeads {
 public:
  LayerHeads(const ModelShape& shape, const HeadMoments& moments, const kernels::WeightView& o_proj)
      : head_dim_(shape.heads().head_dim),
        v_(Eigen::Map<const MatrixOf<double>>(moments.v.data(), shape.heads().kv_width(), shape.heads().kv_width()),
           matrices(output_metrics(shape, o_proj), head_dim_)) {
    MatrixOf<double> k =
        Eigen::Map<const MatrixOf<double>>(moments.k.data(), shape.heads().kv_width(), shape.heads().kv_width());
    const std::vector<MatrixOf<double>> queries = matrices(query_metrics(shape, moments), head_dim_);
    if (!shape.has_alibi()) {
      for (int plane = 0; plane < head_dim_ / 2; ++plane) planes_.push_back(plane_heads(k, queries, plane));
      return;
    }
    const Eigen::Map<const Eigen::VectorXd> sum(moments.k_sum.data(), shape.heads().kv_width());
    k -= sum * sum.transpose() / static_cast<double>(moments.num_tokens);
    k_.emplace_back(std::move(k), queries);
  }

  [[nodiscard]] GroupMaps maps(const std::vector<int>& group) const { return {k_maps(group), real_maps(v_, group)}; }

  // What the heads lose by this merge, as parts of the mean over heads of all there is: of K and of V, their mean.
  [[nodiscard]] double lost(const std::vector<int>& group) const {
    const double k = part(group, planes_, k_);
    const double v = part(group, {}, {&v_, 1});
    return (k + v) / 2;
  }

 private:
  [[nodiscard]] static double part(const std::vector<int>& group, std::span<const PlaneHeads> planes,
                                   std::span<const RealHeads> heads) {
    double lost = 0, total = 0;
    const auto add = [&](const auto& each) {
      lost += each.lost(group);
      total += each.total() / static_cast<double>(each.heads());
    };
    std::ranges::for_each(planes, add);
    std::ranges::for_each(heads, add);
    return total == 0 ? 0.0 : lost / total;
  }

  [[nodiscard]] static HeadMaps real_maps(const RealHeads& heads, const std::vector<int>& group) {
    const Maps<double> maps = heads.maps(group);
    return {row_major(maps.encode), row_major(maps.decode)};
  }

  [[nodiscard]] HeadMaps k_maps(const std::vector<int>& group) const {
    if (planes_.empty()) return real_maps(k_.front(), group);
    const auto heads = static_cast<Index>(group.size());
    MatrixOf<double> encode = MatrixOf<double>::Zero(head_dim_, heads * head_dim_);
    MatrixOf<double> decode = MatrixOf<double>::Zero(heads * head_dim_, head_dim_);
    for (int plane = 0; plane < head_dim_ / 2; ++plane) {
      const Maps<Complex> maps = planes_[static_cast<std::size_t>(plane)].maps(group);
      for (Index head = 0; head < heads; ++head) {
        place(maps.encode(0, head), plane, encode.middleCols(head * head_dim_, head_dim_));
        place(maps.decode(head, 0), plane, decode.middleRows(head * head_dim_, head_dim_));
      }
    }
    return {row_major(encode), row_major(decode)};
  }

  int head_dim_;
  RealHeads v_;
  std::vector<RealHeads> k_;        // one with ALiBi
  std::vector<PlaneHeads> planes_;  // head_dim / 2 with RoPE
};

}  // namespace

std::vector<GroupMaps> svd_maps(const ModelShape& shape, const HeadMoments& moments, const kernels::WeightView& o_proj,
                                const HeadGroups& groups) {
  const LayerHeads heads(shape, moments, o_proj);
  std::vector<GroupMaps> maps;
  for (const std::vector<int>& group : groups) maps.push_back(heads.maps(group));
  return maps;
}

GroupError svd_error(const ModelShape& shape, const HeadMoments& moments, const kernels::WeightView& o_proj) {
  const auto heads = std::make_shared<const LayerHeads>(shape, moments, o_proj);
  const double count = shape.heads().num_key_value_heads;  // lost() is a part of the mean over them
  return [heads, count](const std::vector<int>& group) { return group.size() < 2 ? 0.0 : heads->lost(group) / count; };
}

SimilarityMatrix svd_similarity(const ModelShape& shape, const HeadMoments& moments,
                                const kernels::WeightView& o_proj) {
  const LayerHeads heads(shape, moments, o_proj);
  SimilarityMatrix result(shape.heads().num_key_value_heads);
  for (int a = 0; a < result.size(); ++a) {
    result.set(a, a, 1.0);
    for (int b = 0; b < a; ++b) result.set(a, b, 1 - heads.lost({b, a}));
  }
  return result;
}

}  // namespace dculab::engine
