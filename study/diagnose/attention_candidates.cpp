// Attention and the KV cache.
#include <algorithm>

#include "config/number_text.hpp"
#include "config/unit_text.hpp"
#include "lower/kernel_library.hpp"
#include "study/diagnose/candidate.hpp"

namespace dculab::study {
namespace {

// What one workgroup may have under way: from a line, where each load waits for the one before and for what is done
// with it, which is taken to be as long again, to 16 bytes for each lane of four waves.
// Both are assumptions.
constexpr double kRoundTrips = 2;
constexpr double kMostInFlight = 16.0 * 4;  // bytes per lane of a wave

// Bytes of KV that the workgroup of one sequence and KV head walks in a step, of all layers; more where there are more
// of them than run at a time.
[[nodiscard]] Bytes longest_walk(const StepFacts& facts) {
  Bytes walked;
  for (const Op& op : facts.prediction.plan.ops) {
    if (op.kind != OpKind::attention_decode) continue;
    const AttentionWork& work = op.attention;
    const double heads = work.is_latent ? 1 : work.num_kv_heads;
    const double context = work.context_tokens / std::max(1, work.num_sequences);
    const double rounds = std::max(1.0, work.num_sequences * heads / facts.machine().compute_units);
    walked += op.count * rounds * storage(work.kv_dtype, context * work.loaded_values());
  }
  return walked;
}

// Whether the stack has a kernel for this attention on this device: the one that is predicted. It splits contexts and
// shares KV heads where that pays.
[[nodiscard]] bool has_kernel(const StepFacts& facts) {
  const sim::Machine& machine = facts.machine();
  for (const Op& op : facts.prediction.plan.ops) {
    if (op.kind != OpKind::attention_decode) continue;
    const lower::AttentionKernel* kernel = lower::kernel_for(machine.stack.kernels, op, machine).attention;
    if (kernel != nullptr && !lower::serves(*kernel, op, machine)) return false;
  }
  return true;
}
constexpr const char* kHasKernel = "the program has an attention kernel for this device and head size";

void add_granularity(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found) {
  const sim::MemoryLevel& dram = evidence.any().machine().dram();
  const double in_flight = kMostInFlight * evidence.any().machine().waves.wave_size;
  found.push_back(
      {.cause = Cause::kv_read_granularity,
       .least = dram.latency.value() / in_flight,
       .most = kRoundTrips * (dram.latency / dram.line.value()).value(),
       .odds = has_kernel(evidence.any()) ? kUnusual : kOrdinary,
       .because = has_kernel(evidence.any()) ? kHasKernel : "",
       .extra =
           [](const StepFacts& facts, double amount) {
             return std::max(Seconds{}, Seconds(amount * longest_walk(facts).value()) - facts.attention.time);
           },
       .figure =
           [](const StepFacts& facts, double amount) {
             const Seconds time = std::max(facts.attention.time, Seconds(amount * longest_walk(facts).value()));
             return "KV read at " + share_of_dram(facts, facts.attention.bytes, time);
           }});
}

void add_query_heads(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found) {
  const ModelShape& model = evidence.any().prediction.model;
  const int group = model.has_latents() ? 1 : model.heads().group_size();
  if (group <= 1) return;
  found.push_back({.cause = Cause::kv_per_query_head,
                   .least = 0.5,
                   .most = 2,
                   .odds = has_kernel(evidence.any()) ? kUnusual : kOrdinary,
                   .because = has_kernel(evidence.any()) ? kHasKernel : "",
                   .extra = [group](const StepFacts& facts,
                                    double amount) { return slowed(facts.attention.time, amount * (group - 1)); },
                   .figure =
                       [group](const StepFacts& facts, double amount) {
                         return "attention " + config::number(1 + amount * (group - 1), 2) + " times as long, " +
                                config::short_text((1 + amount * (group - 1)) * facts.attention.time) + "; " +
                                std::to_string(group) + " query heads share a KV head";
                       }});
}

void add_copies(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found) {
  const ModelShape& model = evidence.any().prediction.model;
  const double group = model.has_latents() ? 1 : model.heads().group_size();
  const bool is_open = evidence.any().may_lack_cache();
  found.push_back({.cause = Cause::kv_copied,
                   .least = 0.5,
                   .most = 2 * group,
                   .odds = is_open ? kOrdinary : kUnusual,
                   .because = is_open ? "" : "the program has a paged or static cache",
                   .extra =
                       [](const StepFacts& facts, double amount) {
                         const sim::Machine& machine = facts.machine();
                         return 2 * amount * facts.attention.bytes /
                                (machine.sustained.dram_bandwidth * machine.dram().bandwidth);
                       },
                   .figure =
                       [](const StepFacts& facts, double amount) {
                         return config::short_text(2 * amount * facts.attention.bytes) + " of KV copied in each step";
                       }});
}

void add_no_cache(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found) {
  if (!evidence.any().may_lack_cache()) return;
  found.push_back(
      {.cause = Cause::no_kv_cache,
       .least = 0.5,
       .most = 2,
       .extra = [](const StepFacts& facts,
                   double amount) { return amount * std::max(Seconds{}, facts.recomputed - facts.predicted); },
       .figure =
           [](const StepFacts& facts, double) {
             return "a prefill of the whole context takes " + config::short_text(facts.recomputed);
           }});
}

// Of a prompt: a kernel that waits for each tile; and scores of 4 bytes that are written, scaled and masked, and read
// (stacks/llama.cpp-hip.yaml: bytes_per_score).
void add_prompt_attention(std::vector<CauseCandidate>& found) {
  constexpr double kMostSlowdown = 20;   // times: an assumption
  constexpr double kBytesPerScore = 16;  // F32, of a pair of tokens and a query head: bytes_per_score of that stack
  found.push_back({.cause = Cause::slow_attention,
                   .least = kLeastSlowdown,
                   .most = kMostSlowdown,
                   .extra = [](const StepFacts& facts, double amount) { return slowed(facts.attention.time, amount); },
                   .figure =
                       [](const StepFacts& facts, double amount) {
                         return "attention takes " + config::short_text((1 + amount) * facts.attention.time);
                       }});
  const auto scores = [](const StepFacts& facts) {
    double pairs = 0;
    for (const Op& op : facts.prediction.plan.ops)
      if (op.kind == OpKind::attention_prefill)
        pairs += op.count * op.attention.score_pairs * op.attention.num_query_heads;
    return Bytes(kBytesPerScore * pairs);
  };
  found.push_back({.cause = Cause::scores_in_memory,
                   .least = 0.5,
                   .most = 2,
                   .extra =
                       [scores](const StepFacts& facts, double amount) {
                         const sim::Machine& machine = facts.machine();
                         return amount * scores(facts) / (machine.sustained.dram_bandwidth * machine.dram().bandwidth);
                       },
                   .figure =
                       [scores](const StepFacts& facts, double amount) {
                         return config::short_text(amount * scores(facts)) + " of scores written and read";
                       }});
}

}  // namespace

void add_attention_candidates(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found) {
  if (evidence.any().attention.time <= Seconds{}) return;
  if (!evidence.is_decode()) {
    add_prompt_attention(found);
    return;
  }
  add_granularity(evidence, found);
  add_query_heads(evidence, found);
  add_copies(evidence, found);
  add_no_cache(evidence, found);
}

}  // namespace dculab::study
