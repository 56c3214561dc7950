// Why is it slow? What was measured beside what physics allows and what is predicted, and the causes that can explain
// the rest, ranked by how much of it the evidence puts there (likelihood.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "study/diagnose/cause.hpp"
#include "study/diagnose/measured_step.hpp"
#include "study/diagnose/step_facts.hpp"

namespace dculab::study {

enum class Pace : std::uint8_t {
  as_predicted,  // in its 90 % interval
  faster,        // than the interval, and slower than the floor
  slower,
};
[[nodiscard]] std::string_view name(Pace pace);
[[nodiscard]] Pace pace_of(const StepFacts& facts);

// likely: half of the gap or more; possible: a twentieth; excluded: it can add less than a tenth of the gap, or the
// measurements contradict it.
enum class CauseVerdict : std::uint8_t { likely, possible, unlikely, excluded };
[[nodiscard]] std::string_view name(CauseVerdict verdict);

struct Explanation {
  Cause cause = Cause::host_per_step;
  CauseVerdict verdict = CauseVerdict::excluded;
  double share = 0;      // of the gap
  Seconds explains;      // share * gap
  Seconds most;          // that it can add to the step
  std::string needed;    // a figure that can be checked, were it alone: "KV read at 2.7 GB/s, 1 % of DRAM's peak"
  std::string limit;     // the same at most
  std::string evidence;  // why it is ranked so
  std::string what_to_try;
};

// TPOT = constant + per_token * context, through the measured steps of one batch.
struct ContextLine {
  int batch = 1;
  Seconds constant, per_token;
  Seconds predicted_constant, predicted_per_token;
  std::optional<BytesPerSecond> kv_bandwidth;  // that the measured slope means
};

// A measurement that the two leading causes answer differently: TPOT with each alone.
struct NextMeasurement {
  int batch = 1, context = 1;
  Cause first = Cause::host_per_step, second = Cause::host_per_step;
  Seconds with_first, with_second;
};

// What a client of a server sees beside the explained step.
struct ClientView {
  Seconds tpot;                           // mean
  std::optional<double> prefill_share{};  // of TPOT, beyond a step of decode alone; absent: those were not timed apart
  double predicted_prefill_share = 0;     // of time: requests per second x prefill; 1 and more cannot be served
  std::optional<Seconds> ttft{};          // mean
  Seconds prefill;                        // of one prompt alone, predicted
};

struct Diagnosis {
  std::vector<StepFacts> steps;
  // The step that the verdict is about, whose gap is explained: of the slower ones, or else of the faster ones, or else
  // of all, that with the largest gap.
  std::size_t reference = 0;
  Pace pace = Pace::as_predicted;  // of it; others may be faster where it is slower
  std::optional<ContextLine> over_context{};
  std::optional<ClientView> client{};       // where the step is of a server's result
  std::vector<Explanation> explanations{};  // where it is slower, the largest share first
  double unknown = 0;                       // probability that it is none of these
  std::optional<NextMeasurement> next{};
  std::vector<std::string> warnings{};  // of the measurements

  [[nodiscard]] const StepFacts& at() const { return steps[reference]; }
};

// Throws InputError as predict does, and for a measurement that physics forbids.
[[nodiscard]] Diagnosis diagnose(DiagnosisQuestion question);

}  // namespace dculab::study
