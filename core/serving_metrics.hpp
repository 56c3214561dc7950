// What users and operators see of a serving run: latencies, throughput, and goodput under a service level objective.
//
//   TTFT     arrival to first token         ITL   between two tokens of a request
//   TPOT     mean ITL of a request          latency   arrival to last token
//   slowdown  latency / latency of the same request alone
//   goodput  requests that meet the objective / duration   (Zhong et al. 2024, DistServe)
//
// Names and definitions: vLLM, benchmarks/benchmark_serving.py. Memory does not grow with the number of requests.
#pragma once

#include <cstdint>
#include <optional>

#include "core/quantile_sketch.hpp"
#include "core/request.hpp"
#include "core/units.hpp"

namespace dculab {

// What a request must not exceed; absent: anything will do.
struct ServiceLevel {
  std::optional<Seconds> ttft{}, tpot{}, latency{};
  std::optional<double> slowdown{};
  double share = 0.9;  // of the requests that should be within
};

class ServingMetrics {
 public:
  // `each`: requests that one which is added stands for, where a sample of them is served. Counts are of all.
  explicit ServingMetrics(ServiceLevel objective = {}, std::int64_t each = 1) : objective_(objective), each_(each) {}

  // `alone`: the latency that the request would have without others, if known. Without it no objective for the slowdown
  // is met. Precondition: the sequence has ended, with at least one token.
  void add(const Sequence& sequence, std::optional<Seconds> alone = std::nullopt);

  [[nodiscard]] const QuantileSketch& ttft() const { return ttft_; }
  [[nodiscard]] const QuantileSketch& tpot() const { return tpot_; }  // of requests of two tokens and more
  [[nodiscard]] const QuantileSketch& itl() const { return itl_; }
  [[nodiscard]] const QuantileSketch& latency() const { return latency_; }

  [[nodiscard]] const QuantileSketch& slowdown() const { return slowdown_; }  // ratios, in the place of seconds

  [[nodiscard]] std::int64_t requests() const { return each_ * latency_.count(); }
  [[nodiscard]] std::int64_t requests_within_objective() const { return each_ * within_; }
  [[nodiscard]] double share_within_objective() const {
    return static_cast<double>(requests_within_objective()) / static_cast<double>(requests());
  }
  [[nodiscard]] std::int64_t prompt_tokens() const { return each_ * prompt_tokens_; }
  [[nodiscard]] std::int64_t output_tokens() const { return each_ * output_tokens_; }
  // Of the prompts: that were not computed, since the device's prefix cache or a KV store had them, and those of the
  // store alone.
  [[nodiscard]] std::int64_t cached_tokens() const { return each_ * cached_tokens_; }
  [[nodiscard]] std::int64_t stored_tokens() const { return each_ * stored_tokens_; }
  // Whose K and V were not written (KvSkip): padding, which prompt_tokens() leaves out, and prompts that others wrote.
  [[nodiscard]] std::int64_t padding_tokens() const { return each_ * padding_tokens_; }
  [[nodiscard]] std::int64_t duplicate_tokens() const { return each_ * duplicate_tokens_; }
  [[nodiscard]] std::int64_t preemptions() const { return each_ * preemptions_; }
  [[nodiscard]] Seconds duration() const { return end_ - begin_; }               // first arrival to last token
  [[nodiscard]] Seconds arrival_span() const { return last_arrival_ - begin_; }  // first arrival to last arrival
  // Whether requests came faster than they were served: some waited for a good part of the time in which they came.
  [[nodiscard]] bool queue_grew() const;

 private:
  [[nodiscard]] bool meets_objective(const Sequence& sequence, std::optional<double> slowdown) const;

  ServiceLevel objective_;
  std::int64_t each_ = 1;
  QuantileSketch ttft_, tpot_, itl_, latency_, slowdown_;
  std::int64_t within_ = 0, prompt_tokens_ = 0, output_tokens_ = 0, cached_tokens_ = 0, stored_tokens_ = 0,
               padding_tokens_ = 0, duplicate_tokens_ = 0, preemptions_ = 0;
  Seconds begin_, last_arrival_, end_;
};

}  // namespace dculab
