#include "study/diagnose/candidate.hpp"

#include "config/number_text.hpp"
#include "config/unit_text.hpp"
#include "core/letter_case.hpp"

namespace dculab::study {

std::string share_of_dram(const StepFacts& facts, Bytes bytes, Seconds time) {
  const BytesPerSecond rate = bytes / time;
  return config::percent(rate / facts.machine().dram().bandwidth, 2) + " of DRAM's peak (" + config::short_text(rate) +
         ")";
}

bool DiagnosisEvidence::is_python() const {
  const std::string program = lower_case(any().machine().stack.program);
  return program != "llama.cpp" && program != "tensorrt-llm" && program != "dculab";
}

LaunchTimes launch_times(const DiagnosisEvidence& evidence) {
  // Kernels for one of the plan's, and seconds of a launch: assumptions; that of a fast host leans on the source of
  // host.per_kernel in stacks/vllm-cuda.yaml.
  constexpr double kUnfused = 4;
  if (!evidence.is_python()) return {2e-6, 10e-6};
  return {5e-6, 25e-6 * (evidence.any().machine().stack.kernels_per_op > 1 ? 1 : kUnfused)};
}

std::vector<CauseCandidate> cause_candidates(const DiagnosisEvidence& evidence) {
  std::vector<CauseCandidate> found;
  add_host_candidates(evidence, found);
  add_product_candidates(evidence, found);
  add_placement_candidates(evidence, found);
  add_attention_candidates(evidence, found);
  add_expert_candidates(evidence, found);
  add_serving_candidates(evidence, found);
  return found;
}

}  // namespace dculab::study
