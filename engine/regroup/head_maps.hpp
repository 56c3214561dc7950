// One KV head in the place of several: it is a linear map of theirs, and each of them, nearly, one of it.
#pragma once

#include <vector>

#include "core/dtype.hpp"

namespace dculab::engine {

// Of K or of V of one group.
struct HeadMaps {
  std::vector<float> encode;  // [head_dim, heads of the group * head_dim]: the shared head, from the heads in a row
  std::vector<float> decode;  // [heads of the group * head_dim, head_dim]: the heads in a row, from the shared one
};

struct GroupMaps {
  HeadMaps k, v;
};

// Stored values of some heads' rows of a matrix with `columns` columns, or of a bias: one.
struct StoredRows {
  int head_dim = 0;
  int columns = 0;
  Dtype dtype = Dtype::f32;
};

// shared [head_dim, columns] = encode * heads [heads of the group * head_dim, columns]
void encode_heads(const HeadMaps& maps, const StoredRows& format, const void* heads, void* shared);

// What encoding does to K, the rows of Q make up for: q . (decode_h * shared) = (decode_h^T * q) . shared.
// `queries`: [heads of the group, query heads of each, head_dim, columns], in place.
void decode_queries(const HeadMaps& maps, const StoredRows& format, int queries_per_head, void* queries);

// What it does to V, the columns of O make up for: O_h * (decode_h * shared) = (O_h * decode_h) * shared.
// `o_proj`: `rows` rows of [groups, heads of a group, query heads of each, head_dim], in place.
void decode_outputs(const std::vector<GroupMaps>& maps, int head_dim, int queries_per_head, int rows, Dtype dtype,
                    void* o_proj);

}  // namespace dculab::engine
