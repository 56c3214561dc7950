// Products, and what else lies between attention and attention.
#include <algorithm>

#include "config/number_text.hpp"
#include "config/unit_text.hpp"
#include "lower/kernel_library.hpp"
#include "sim/compute/peak.hpp"
#include "study/diagnose/candidate.hpp"

namespace dculab::study {
namespace {

// What a lane asks for at least: a value, of integers a word that holds several.
[[nodiscard]] double smallest_load(const StepFacts& facts, bool is_quantized) {
  constexpr double kWord = 4;
  if (!is_quantized) return bits(facts.prediction.model.dtype) / 8.0;
  const Dtype dtype = facts.prediction.options.weights.dtype;
  return bits(dtype) < 8 ? kWord : 1;
}

// A kernel whose lanes each walk a row of their own fetches a line for every load: so many times the traffic, at most.
[[nodiscard]] double uncoalesced(const StepFacts& facts, bool is_quantized) {
  return facts.machine().dram().line.value() / smallest_load(facts, is_quantized);
}

// Vector units in F32, four times worse for a kernel without tiles, on tiles of up to 128 rows however few there are.
[[nodiscard]] double slowest_arithmetic(const StepFacts& facts, const OpTotals& totals) {
  constexpr double kUntiled = 4, kTileRows = 128;  // times, and rows: assumptions
  const sim::Machine& machine = facts.machine();
  const auto f32 = machine.peaks.find(Dtype::f32);
  if (f32 == machine.peaks.end()) return 1;
  const double rows = std::max(kTileRows, static_cast<double>(facts.prediction.plan.batch.num_tokens()));
  return kUntiled * FlopCount(2 * rows * totals.values) / f32->second.vector / totals.time;
}

using Totals = OpTotals StepFacts::*;

[[nodiscard]] double most_slowdown(const StepFacts& facts, Totals totals) {
  const bool is_quantized = totals == &StepFacts::quantized;
  return std::max(uncoalesced(facts, is_quantized), slowest_arithmetic(facts, facts.*totals)) - 1;
}

// "5 % of the arithmetic peak (9.4 TFLOP/s)"
[[nodiscard]] std::string share_of_peak(const StepFacts& facts, const OpTotals& totals, Seconds time) {
  const auto tokens = static_cast<double>(facts.prediction.plan.batch.num_tokens());
  const FlopsPerSecond rate = FlopCount(2 * tokens * totals.values) / time;
  const sim::MultiplyFormat format = sim::multiply_format(facts.machine(), facts.prediction.model.dtype);
  return config::percent(rate / sim::highest_rate(format.peak), 2) + " of the arithmetic peak (" +
         config::short_text(rate) + ")";
}

[[nodiscard]] CauseCandidate slow_kernel(Cause cause, const StepFacts& any, Totals totals, const std::string& what) {
  return {.cause = cause,
          .least = kLeastSlowdown,
          .most = most_slowdown(any, totals),
          .extra = [totals](const StepFacts& facts, double amount) { return slowed((facts.*totals).time, amount); },
          .figure =
              [totals, what](const StepFacts& facts, double amount) {
                const OpTotals& all = facts.*totals;
                const Seconds time = (1 + amount) * all.time;
                return what + " at " +
                       (facts.asked.phase == Phase::decode ? share_of_dram(facts, all.bytes, time)
                                                           : share_of_peak(facts, all, time));
              }};
}

[[nodiscard]] bool is_gptq(const StepFacts& facts) {
  const WeightFormat& weights = facts.prediction.options.weights;
  return is_integer(weights.dtype) && weights.group_size != 0 && facts.quantized.time > Seconds{};
}

// Groups of in-features that lie anywhere are cut among the devices, so a part cannot be sorted by group, as vLLM does
// before its kernel (model_executor/layers/quantization/gptq.py: ExllamaState.UNUSED).
void add_act_order(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found) {
  const std::string& stated = evidence.question.desc_act;
  const StepFacts& facts = evidence.any();
  if (!is_gptq(facts) || facts.prediction.model.tensor_parallel_size == 1 || stated == "no") return;
  CauseCandidate act_order = slow_kernel(Cause::act_order, facts, &StepFacts::quantized, "quantized products");
  if (stated == "yes") {
    act_order.odds = kStated;
    act_order.because = "the checkpoint has desc_act, under tensor parallelism";
  }
  found.push_back(std::move(act_order));
}

[[nodiscard]] bool multiplies(const sim::Machine& machine, Dtype dtype) {
  const auto own = machine.peaks.find(dtype), f32 = machine.peaks.find(Dtype::f32);
  if (own == machine.peaks.end()) return false;
  return f32 == machine.peaks.end() || sim::highest_rate(own->second) > sim::highest_rate(f32->second);
}

// Whether a kernel of the program takes the weights as they are stored, at this number of rows.
[[nodiscard]] bool has_product_kernel(const StepFacts& facts) {
  const sim::Machine& machine = facts.machine();
  for (const Op& op : facts.prediction.plan.ops) {
    if (op.kind != OpKind::matmul || bits(op.weight_format.dtype) >= 16) continue;
    const lower::MatmulKernel* kernel = lower::kernel_for(machine.stack.kernels, op, machine).matmul;
    if (kernel != nullptr && (!lower::serves(*kernel, op, machine) || kernel->widening > 0)) return false;
  }
  return true;
}

// Quantized weights are written in 16 bits and read again; those of 16 bits that the device does not multiply, in 32.
void add_widening(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found) {
  const StepFacts& facts = evidence.any();
  const bool is_quantized = facts.quantized.values + facts.experts.values > facts.products.values &&
                            bits(facts.prediction.options.weights.dtype) < 16;
  const Dtype dtype = facts.prediction.model.dtype;
  const bool is_missing = !is_quantized && !multiplies(facts.machine(), dtype);
  const double bytes_per_value = is_quantized ? 4 : 8;  // written and read, of 16 and of 32 bits
  CauseCandidate widening{
      .cause = Cause::weights_widened,
      .least = 0.5,
      .most = 2,
      .extra =
          [=](const StepFacts& step, double amount) {
            const double values = is_quantized ? step.quantized.values + step.experts.values : step.products.values;
            const sim::Machine& machine = step.machine();
            return Bytes(amount * bytes_per_value * values) /
                   (machine.sustained.dram_bandwidth * machine.dram().bandwidth);
          },
      .figure =
          [=](const StepFacts& step, double amount) {
            const double values = is_quantized ? step.quantized.values + step.experts.values : step.products.values;
            return config::short_text(Bytes(amount * bytes_per_value * values)) +
                   " written and read again in each step";
          }};
  const bool is_served = is_quantized ? has_product_kernel(facts) : !is_missing;
  widening.odds = is_served ? kUnusual : kStated;
  widening.because =
      is_quantized
          ? (is_served ? "the program has a kernel for these weights" : "no kernel of the program takes these weights")
          : std::string(is_served ? "the device multiplies " : "the device does not multiply ") +
                std::string(name(dtype)) + (is_served ? "" : " faster than F32");
  found.push_back(std::move(widening));
}

// Matrix cores that stay idle: the vector units take as much longer.
void add_matrix_cores(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found) {
  const sim::MultiplyFormat format =
      sim::multiply_format(evidence.any().machine(), evidence.any().prediction.model.dtype);
  if (evidence.is_decode() || !format.peak.matrix) return;
  const double ratio = *format.peak.matrix / format.peak.vector;
  found.push_back(
      {.cause = Cause::no_matrix_cores,
       .least = 0.5,
       .most = 2,
       .extra =
           [ratio](const StepFacts& facts, double amount) {
             return slowed(facts.products.time + facts.quantized.time + facts.experts.time, amount * (ratio - 1));
           },
       .figure =
           [ratio](const StepFacts&, double amount) {
             return "products " + config::number(1 + amount * (ratio - 1), 2) + " times slower; matrix cores are " +
                    config::number(ratio, 2) + " times the vector units";
           }});
}

// Unfused, each of the few operations of a kernel reads and writes on its own.
void add_elementwise(std::vector<CauseCandidate>& found) {
  constexpr double kMostUnfused = 10;  // times: an assumption
  found.push_back({.cause = Cause::slow_elementwise,
                   .least = kLeastSlowdown,
                   .most = kMostUnfused,
                   .extra = [](const StepFacts& facts, double amount) { return slowed(facts.others, amount); },
                   .figure =
                       [](const StepFacts& facts, double amount) {
                         return config::short_text((1 + amount) * facts.others) +
                                " for norms, activations, rotations and copies";
                       }});
}

}  // namespace

void add_product_candidates(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found) {
  const StepFacts& facts = evidence.any();
  if (facts.products.time > Seconds{})
    found.push_back(slow_kernel(Cause::slow_products, facts, &StepFacts::products, "products with 16-bit weights"));
  if (facts.quantized.time > Seconds{})
    found.push_back(slow_kernel(Cause::slow_quantized_products, facts, &StepFacts::quantized, "quantized products"));
  add_act_order(evidence, found);
  add_widening(evidence, found);
  add_matrix_cores(evidence, found);
  add_elementwise(found);
}

}  // namespace dculab::study
