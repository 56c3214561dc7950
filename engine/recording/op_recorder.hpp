// Address traces of the ops of a step: the GPU kernels run on the host, lane by lane, on one layer of a model whose
// values do not matter. Only attention over critical blocks goes by them: the layer's ops before it run too, on weights
// and a cache of random values, so that each KV head chooses blocks of its own.
#pragma once

#include <string_view>
#include <vector>

#include "core/address_trace.hpp"
#include "core/batch.hpp"
#include "core/engine_options.hpp"
#include "core/step_plan.hpp"
#include "lower/dculab_gpu/matrix_cores.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

struct RecordedOp {
  StepPlan plan;                       // of that op alone, one execution
  std::vector<AddressTrace> launches;  // of its kernels, in order: two for partitioned decode attention

  [[nodiscard]] const Op& op() const { return plan.ops.front(); }
};

// Runs the op called `op_name` of the plan of (model, options, batch) once. KV blocks are scattered over the cache, as
// in a server that has run for a while; `batch` has lengths only. Throws InputError when the plan has no such op, or
// the kernels cannot run it.
[[nodiscard]] RecordedOp record_op(const ModelShape& model, const EngineOptions& options, const Batch& batch,
                                   std::string_view op_name, int wave_size,
                                   lower::dculab_gpu::Units units = lower::dculab_gpu::Units::vector);

}  // namespace dculab::engine
