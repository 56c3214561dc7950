// What a server has done, as Prometheus reads it, under vLLM's names (vllm/v1/metrics/loggers.py) with vLLM's buckets.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/request.hpp"
#include "engine/generate/async_engine.hpp"

namespace dculab::http {

class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

  void observe(double value);

  // Lines `name`_bucket, _sum and _count; `labels` without braces.
  void write(std::string& text, std::string_view name, std::string_view labels) const;

 private:
  std::vector<double> bounds_;        // ascending
  std::vector<std::int64_t> counts_;  // up to each bound and above the one before; the last: above all
  double sum_ = 0;
};

// Any thread may call it.
class ServerMetrics {
 public:
  // `max_model_len`: of the buckets of token counts.
  ServerMetrics(const std::string& model, int max_model_len, bool caches_prefixes);

  // The last `count` of the sequence's tokens are new.
  void saw_tokens(const Sequence& sequence, int count);

  // A request has ended: "stop", "length" or "abort".
  void finished(const std::string& reason, Seconds latency, int prompt_tokens, int generated_tokens);

  [[nodiscard]] std::string text(const engine::AsyncEngineState& state) const;

 private:
  std::string labels_;
  bool caches_prefixes_;
  mutable std::mutex mutex_;
  std::int64_t prompt_tokens_ = 0, generation_tokens_ = 0, cached_tokens_ = 0;
  std::map<std::string, std::int64_t> finished_;  // by reason
  Histogram ttft_, inter_token_latency_, e2e_latency_, request_prompt_tokens_, request_generation_tokens_;
};

}  // namespace dculab::http
