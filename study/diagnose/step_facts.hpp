// A measured step beside what is predicted for it: the figures that explanations are made of.
#pragma once

#include <utility>
#include <vector>

#include "study/answer/prediction.hpp"
#include "study/diagnose/measured_step.hpp"

namespace dculab::study {

// Times and bytes are of all executions of one step on one device.
struct OpTotals {
  Seconds time;
  Bytes bytes;        // distinct bytes of weights, or of KV
  double values = 0;  // weights
};

struct StepFacts {
  MeasuredStep asked;
  Prediction prediction;
  double tokens = 1;   // of a sequence and step; more than 1 where drafts are verified
  Seconds measured;    // the step
  Seconds predicted;   // with drafting
  Seconds floor;       // what physics allows: sim/calibration/floor_check.hpp
  OpTotals products;   // of weights of 16 bits and more, without routed experts
  OpTotals quantized;  // of weights of fewer bits
  OpTotals experts;    // products of routed experts
  OpTotals attention;
  Seconds exchange;
  Seconds others;
  Seconds device;  // all ops, and the host's launches where those take longer
  double launches = 0;
  double collectives = 0;
  Bytes collective_bytes;                      // results of all of them
  std::vector<std::pair<int, Seconds>> fewer;  // steps of fewer sequences, ascending, to the batch itself
  Seconds prefill;                             // of one prompt of the served load alone, where there is one
  Seconds recomputed;                          // a step that computes the whole context anew, where may_lack_cache

  [[nodiscard]] Seconds gap() const { return measured - predicted; }
  [[nodiscard]] const sim::Machine& machine() const { return prediction.machine; }
  // 0 for a part that is below what is known of the predicted step, a ten-thousandth; else the part.
  [[nodiscard]] Seconds rounded(Seconds part) const { return part < 1e-4 * predicted ? Seconds{} : part; }
  // Scripts on a framework may keep no KV cache, or copy it; programs that serve have one that stays where it is.
  [[nodiscard]] bool may_lack_cache() const;
  // Share of a server's time that prompts take, as predicted: requests per second x the prefill of one alone.
  [[nodiscard]] double prefill_share() const;
  // Whether the measured step has other requests' prompts in it: it is TPOT, or a median time between tokens that is
  // hardly less, where prompts take a good part of the time. Then most steps compute some of one.
  [[nodiscard]] bool has_prefills() const;
  // Distinct weights that the step reads.
  [[nodiscard]] Bytes weights() const { return products.bytes + quantized.bytes + experts.bytes; }
};

// Of the question's step at the batch and context that were measured. Throws InputError as predict does.
[[nodiscard]] StepFacts step_facts(const DiagnosisQuestion& question, const MeasuredStep& step);

// The same without a measurement: only what is predicted.
[[nodiscard]] StepFacts step_facts(const DiagnosisQuestion& question, int batch, int context);

}  // namespace dculab::study
