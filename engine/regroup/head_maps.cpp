#include "engine/regroup/head_maps.hpp"

#include <Eigen/Core>

#include "engine/checkpoint/stored_values.hpp"

namespace dculab::engine {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

std::span<float> values_of(RowMajor& matrix) { return {matrix.data(), static_cast<std::size_t>(matrix.size())}; }

RowMajor load(const void* stored, Dtype dtype, Eigen::Index rows, Eigen::Index columns) {
  RowMajor matrix(rows, columns);
  widen(stored, dtype, values_of(matrix));
  return matrix;
}

void store(RowMajor matrix, Dtype dtype, void* stored) { narrow(values_of(matrix), dtype, stored); }

// [heads of the group * head_dim, head_dim]
Eigen::Map<const RowMajor> decode_of(const HeadMaps& maps, int head_dim) {
  return {maps.decode.data(), static_cast<Eigen::Index>(maps.decode.size()) / head_dim, head_dim};
}

}  // namespace

void encode_heads(const HeadMaps& maps, const StoredRows& format, const void* heads, void* shared) {
  const Eigen::Map<const RowMajor> encode(maps.encode.data(), format.head_dim,
                                          static_cast<Eigen::Index>(maps.encode.size()) / format.head_dim);
  store(encode * load(heads, format.dtype, encode.cols(), format.columns), format.dtype, shared);
}

void decode_queries(const HeadMaps& maps, const StoredRows& format, int queries_per_head, void* queries) {
  const auto decode = decode_of(maps, format.head_dim);
  RowMajor rows = load(queries, format.dtype, decode.rows() * queries_per_head, format.columns);
  for (Eigen::Index query = 0; query * format.head_dim < rows.rows(); ++query) {
    const auto map = decode.middleRows(query / queries_per_head * format.head_dim, format.head_dim);
    auto head = rows.middleRows(query * format.head_dim, format.head_dim);
    head = (map.transpose() * head).eval();
  }
  store(rows, format.dtype, queries);
}

void decode_outputs(const std::vector<GroupMaps>& maps, int head_dim, int queries_per_head, int rows, Dtype dtype,
                    void* o_proj) {
  const Eigen::Index group_width = decode_of(maps.front().v, head_dim).rows() * queries_per_head;
  RowMajor outputs = load(o_proj, dtype, rows, group_width * static_cast<Eigen::Index>(maps.size()));
  for (Eigen::Index query = 0; query * head_dim < outputs.cols(); ++query) {
    const Eigen::Index group = query * head_dim / group_width;
    const Eigen::Index head = (query - group * group_width / head_dim) / queries_per_head;
    auto columns = outputs.middleCols(query * head_dim, head_dim);
    const auto decode = decode_of(maps[static_cast<std::size_t>(group)].v, head_dim);
    columns = (columns * decode.middleRows(head * head_dim, head_dim)).eval();
  }
  store(outputs, dtype, o_proj);
}

}  // namespace dculab::engine
