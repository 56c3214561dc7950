// A trace of a small model, with something in every field.
#pragma once

#include "model/plan_step.hpp"
#include "model/trace.hpp"

namespace dculab::config {

inline ModelShape small_model() {
  ModelShape model;
  model.name = "tiny \"quoted\"";
  model.hidden_size = 64;
  model.kinds[0].mlp.intermediate_size = 128;
  model.layers.assign(2, 0);
  model.kinds[0].gqa().heads = {8, 2, 8};
  model.vocab_size = 1000;
  model.max_position_embeddings = 512;
  model.tie_word_embeddings = true;
  model.kinds[0].mlp.kind = MlpKind::plain;
  model.dtype = Dtype::bf16;
  model.norm_eps = 1e-5;
  model.kinds[0].gqa().position.rope_theta = 500000;
  model.kinds[0].gqa().position.rope_scaling = {RopeScalingKind::llama3, 8, 1, 4, 4096};
  return model;
}

inline Trace small_trace() {
  Trace trace;
  trace.header = {"this-host", "two cores", "gcc 12", 2, "median of 7", "2026-01-02T03:04:05Z"};
  TraceStep step;
  step.id = "decode-b3";
  step.model = small_model();
  step.options.block_size = 32;
  step.options.kv_cache_dtype = Dtype::fp8_e4m3;
  step.options.weights = {Dtype::int4, 32};
  step.options.activation_dtype = Dtype::f32;
  step.options.enable_chunked_prefill = false;
  step.options.gpu_memory_utilization = 0.123456789;
  step.options.attention_split.partition_tokens = 0;
  step.batch = uniform_batch(Phase::decode, 3, 100);
  step.batch.sequences.push_back({3, Phase::decode, 7, 1, true});
  step.batch.sequences.push_back({4, Phase::prefill, 64, 32, false});
  step.duration = Seconds(1.0 / 3.0);
  step.spread = Seconds(1e-9);
  step.repeats = 7;
  step.batch.cold_share = 0.25;
  for (const Op& op : plan_step(step.model, step.options, step.batch).ops) {
    step.op_names.emplace_back(op.name);
    step.op_durations.push_back(Seconds(1.23456789e-6 * static_cast<double>(step.op_durations.size())));
  }
  trace.steps = {step, step};
  trace.steps[1].id = "second";
  trace.steps[1].model.kinds[0].gqa().position.rope_scaling = {};
  return trace;
}

inline void leave_out_ops(TraceStep& step) {
  step.op_names.clear();
  step.op_durations.clear();
}

}  // namespace dculab::config
