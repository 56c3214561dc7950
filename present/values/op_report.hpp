// The ops of a priced step: what they are called in tables, and their fields in JSON.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/model_shape.hpp"
#include "present/output/field_json.hpp"
#include "sim/cost/step_price.hpp"

namespace dculab::present {

// "qkv_proj", or "qkv_proj, window 4096" where the model has several kinds of layers.
[[nodiscard]] std::string op_label(const Op& op, const ModelShape& model);

// An op of a plan, on the machine that it was priced for.
struct PricedOp {
  const Op& op;
  const sim::OpPrice& price;
  const sim::Machine& machine;
  FlopsPerSecond peak;    // of the instructions that do its arithmetic
  bool has_kind = false;  // it is a layer's, and the model has several kinds of layers

  // By the name of the memory level.
  [[nodiscard]] std::vector<std::pair<std::string, Bytes>> bytes() const;
  [[nodiscard]] std::vector<std::pair<std::string, double>> hit_rates() const;
  // What its time is made of, by the terms of the cost law (sim/cost/step_price.hpp). Those up to `split_k_reduction`
  // add up; of the others it is a smooth maximum.
  [[nodiscard]] std::vector<std::pair<std::string, Seconds>> terms() const;
  // Of attention, whose KV blocks have slots without a token.
  [[nodiscard]] std::optional<double> empty_slots() const;
};

// All of the plan's. Preconditions: `price` is of `plan` on `machine`; all three outlive what is returned.
[[nodiscard]] std::vector<PricedOp> priced_ops(const StepPlan& plan, const sim::StepPrice& price,
                                               const sim::Machine& machine);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::PricedOp> {
  using Op = present::PricedOp;
  static constexpr std::string_view id = "op";
  static constexpr std::string_view doc =
      "An op of a step. Times, FLOP and bytes are of all its executions; those of a model that several devices share "
      "are one device's.";
  static constexpr auto fields = std::tuple(
      field("op", "its name: qkv_proj, attention_decode, down_proj ...", [](const Op& each) { return each.op.name; }),
      field("count", "executions in the step", unit::count, [](const Op& each) { return each.op.count; }),
      field("seconds", "predicted time", [](const Op& each) { return each.price.all_executions(); }),
      field("bound", "what limits it: compute, latency, launch, exchange, or the name of a memory level",
            [](const Op& each) { return sim::name(each.price.bound, each.machine); }),
      field("flops", "arithmetic; 2 for a multiply-add", [](const Op& each) { return each.op.flops * each.op.count; }),
      field("peak_flop_per_second", "of the machine's instructions that do its arithmetic, where it has any",
            [](const Op& each) { return when(each.op.flops > FlopCount(), [&] { return each.peak; }); }),
      field("bytes", "that reach each memory level", &Op::bytes),
      field("hit_rate", "of those, by memory level; 1 in the last", unit::share, &Op::hit_rates),
      field("terms_seconds",
            "what the time is made of: launch, look_ups, chain, cold_misses and split_k_reduction add up, the larger "
            "of the rest, "
            "compute, memory, dram_in_turn and latency, hides the others",
            &Op::terms),
      field("empty_slots", "of attention: share of its KV blocks' slots that hold no token", unit::share,
            &Op::empty_slots),
      field("effective_latency_seconds", "latency of a load, weighted by where it hits",
            [](const Op& each) { return each.price.effective_latency; }),
      field("layer_kind",
            "which kind of the model's layers it belongs to, counted from 0; there where the model has several",
            [](const Op& each) { return when(each.has_kind, [&] { return each.op.layer_kind; }); }));
};

}  // namespace dculab
