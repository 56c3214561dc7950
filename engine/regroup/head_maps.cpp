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
  Eigen::Index width = 0;
  for (const GroupMaps& each : maps) width += decode_of(each.v, head_dim).rows() * queries_per_head;
  RowMajor outputs = load(o_proj, dtype, rows, width);
  Eigen::Index column = 0;
  for (const GroupMaps& each : maps) {
    const auto decode = decode_of(each.v, head_dim);
    for (Eigen::Index row = 0; row < decode.rows(); row += head_dim)
      for (int query = 0; query < queries_per_head; ++query, column += head_dim) {
        auto columns = outputs.middleCols(column, head_dim);
        columns = (columns * decode.middleRows(row, head_dim)).eval();
      }
  }
  store(outputs, dtype, o_proj);
}

}  // namespace dculab::engine
