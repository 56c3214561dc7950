// Products without a model around them.
#pragma once

#include <cstdint>

#include "core/step_plan.hpp"

namespace dculab::sim::test {

constexpr Bytes kFootprint{1e10};  // far more than any cache holds

// y[m, n] = x[m, k] w[n, k]^T, x and y in F16.
inline Op product(double m, double n, double k, Dtype weights = Dtype::f16) {
  Op op;
  op.kind = OpKind::matmul;
  op.m = static_cast<std::int64_t>(m);
  op.n = static_cast<std::int64_t>(n);
  op.k = static_cast<std::int64_t>(k);
  op.flops = FlopCount(2 * m * n * k);
  op.weight_format.dtype = weights;
  op.add({OperandRole::weight, storage(weights, n * k), storage(weights, k)});
  op.add({OperandRole::activation, Bytes(2 * m * k), Bytes(2 * k)});
  op.add({OperandRole::output, Bytes(2 * m * n), Bytes(2 * n)});
  return op;
}

}  // namespace dculab::sim::test
