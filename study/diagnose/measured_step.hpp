// What a user measured, as times of single steps: tokens per second, TPOT at one context or several, or the results of
// benchmark tools.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "core/units.hpp"
#include "study/scenario/step_question.hpp"

namespace dculab::study {

// Empty and 0: not given.
struct DiagnosisQuestion {
  StepQuestion step;                         // model, machine, stack ... of what ran
  int tensor_parallel_size = 0;              // as deployment.tensor_parallel_size
  std::vector<std::string> files;            // results of benchmark tools
  std::vector<std::string> at;               // TPOT by context, "1500=66ms", or by batch and context, "8x1500=66ms"
  std::string tpot;                          // at the step's batch and context
  double tokens_per_second = 0;              // generated, of all sequences together
  double prefill_tokens_per_second = 0;      // of prompts of the step's context
  int prompt_tokens = 0, output_tokens = 0;  // of a request, for files that do not say it
  std::string enforce_eager;                 // kernels are launched one by one: "yes", "no"; "": not known
  std::string desc_act;                      // GPTQ's act-order: "yes", "no"; "": as config.json says
};

// What a server's result says beside its steps of decode.
struct ServedLoad {
  double requests_per_second = 0;
  int prompt_tokens = 0;          // of a request, mean
  Seconds tpot;                   // mean
  std::optional<Seconds> ttft{};  // mean
  bool times_steps = false;       // the measured step is one of decode alone, not TPOT
};

// One measurement.
struct MeasuredStep {
  Phase phase = Phase::decode;
  int batch = 1;
  int context = 1024;  // tokens of each sequence after the step; of a prefill the prompt
  // Decode: from one token of a sequence to its next, TPOT. Prefill: the whole step.
  Seconds time{};
  bool is_rate = false;  // of all sequences, of which fewer than `batch` may have run at a time
  std::string source{};  // the option with its value, or the file
  std::optional<ServedLoad> served{};
};

struct Measurements {
  std::vector<MeasuredStep> steps;
  std::vector<std::string> warnings{};
};

inline constexpr std::size_t kMostMeasurements = 64;

// All that the question says, and what it leaves out of the files' models, stacks and formats filled in. Throws
// InputError, which names the option or the file; also for measurements that contradict each other.
[[nodiscard]] Measurements measured_steps(DiagnosisQuestion& question);

}  // namespace dculab::study
