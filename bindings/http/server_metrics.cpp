#include "bindings/http/server_metrics.hpp"

#include <algorithm>
#include <charconv>

namespace dculab::http {
namespace {

[[nodiscard]] std::string decimal(double value) {
  char digits[32];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  std::string text(std::begin(digits), end);
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

[[nodiscard]] std::string escaped(std::string_view label) {
  std::string text;
  for (const char each : label) {
    if (each == '\\' || each == '"') text += '\\';
    text += each == '\n' ? std::string("\\n") : std::string(1, each);
  }
  return text;
}

// 1, 2, 5, 10, 20 ... as far as `most`.
[[nodiscard]] std::vector<double> steps_to(int most) {
  std::vector<double> bounds;
  for (std::int64_t power = 1;; power *= 10)
    for (const std::int64_t digit : {1, 2, 5}) {
      if (digit * power > most) return bounds;
      bounds.push_back(static_cast<double>(digit * power));
    }
}

const std::vector<double> kTtft = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                                   1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560};
const std::vector<double> kTokenGap = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                                       0.75, 1,     2.5,  5,     7.5, 10,   20,  40,  80};
const std::vector<double> kLatency = {0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                      30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};

class Page {
 public:
  explicit Page(const std::string& labels) : labels_(labels) {}

  void begin(const std::string& name, std::string_view type, std::string_view help) {
    text_.append("# HELP vllm:").append(name).append(" ").append(help).append("\n# TYPE vllm:").append(name);
    text_.append(" ").append(type).append("\n");
  }
  void value(const std::string& name, double number, const std::string& label = {}) {
    text_ += "vllm:" + name + "{" + labels_ + label + "} " + decimal(number) + "\n";
  }
  void gauge(const std::string& name, double number, std::string_view help) {
    begin(name, "gauge", help);
    value(name, number);
  }
  void counter(const std::string& name, std::int64_t number, std::string_view help) {
    begin(name + "_total", "counter", help);
    value(name + "_total", static_cast<double>(number));
  }
  void histogram(const std::string& name, const Histogram& histogram, std::string_view help) {
    begin(name, "histogram", help);
    histogram.write(text_, "vllm:" + name, labels_);
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  const std::string& labels_;
  std::string text_;
};

}  // namespace

void Histogram::observe(double value) {
  const auto place = std::ranges::lower_bound(bounds_, value);  // `le`: a bound has what equals it
  ++counts_[static_cast<std::size_t>(place - bounds_.begin())];
  sum_ += value;
}

void Histogram::write(std::string& text, std::string_view name, std::string_view labels) const {
  const auto line = [&](std::string_view suffix, const std::string& label, const std::string& value) {
    text.append(name).append(suffix).append("{").append(labels).append(label).append("} ").append(value).append("\n");
  };
  std::int64_t below = 0;
  for (std::size_t index = 0; index < counts_.size(); ++index) {
    below += counts_[index];
    const std::string bound = index < bounds_.size() ? decimal(bounds_[index]) : "+Inf";
    line("_bucket", ",le=\"" + bound + "\"", decimal(static_cast<double>(below)));
  }
  line("_count", "", decimal(static_cast<double>(below)));
  line("_sum", "", decimal(sum_));
}

ServerMetrics::ServerMetrics(const std::string& model, int max_model_len, bool caches_prefixes)
    : labels_("model_name=\"" + escaped(model) + "\",engine=\"0\""),
      caches_prefixes_(caches_prefixes),
      finished_({{"abort", 0}, {"length", 0}, {"stop", 0}}),
      ttft_(kTtft),
      inter_token_latency_(kTokenGap),
      e2e_latency_(kLatency),
      request_prompt_tokens_(steps_to(max_model_len)),
      request_generation_tokens_(steps_to(max_model_len)) {}

void ServerMetrics::saw_tokens(const Sequence& sequence, int count) {
  const std::lock_guard lock(mutex_);
  generation_tokens_ += count;
  const std::vector<Seconds>& times = sequence.token_times;
  if (sequence.num_generated() > count) {
    const std::size_t before = times.size() - static_cast<std::size_t>(count) - 1;
    inter_token_latency_.observe((times.back() - times[before]).value());
    return;
  }
  prompt_tokens_ += sequence.num_prompt_tokens();
  cached_tokens_ += sequence.num_cached_tokens;
  ttft_.observe(sequence.ttft().value());
}

void ServerMetrics::finished(const std::string& reason, Seconds latency, int prompt_tokens, int generated_tokens) {
  const std::lock_guard lock(mutex_);
  ++finished_[reason];
  e2e_latency_.observe(latency.value());
  request_prompt_tokens_.observe(prompt_tokens);
  request_generation_tokens_.observe(generated_tokens);
}

std::string ServerMetrics::text(const engine::AsyncEngineState& state) const {
  const std::lock_guard lock(mutex_);
  Page page(labels_);
  page.gauge("num_requests_running", state.running, "Number of requests in model execution batches.");
  page.gauge("num_requests_waiting", state.waiting, "Number of requests waiting to be processed.");
  page.gauge("kv_cache_usage_perc", state.kv_cache_usage, "KV-cache usage. 1 means 100 percent usage.");
  page.counter("prefix_cache_queries", caches_prefixes_ ? prompt_tokens_ : 0, "Tokens looked up in the prefix cache.");
  page.counter("prefix_cache_hits", cached_tokens_, "Tokens found in the prefix cache.");
  page.counter("num_preemptions", state.num_preemptions, "Preemptions by the engine.");
  page.counter("prompt_tokens", prompt_tokens_, "Prefill tokens processed.");
  page.counter("generation_tokens", generation_tokens_, "Generation tokens processed.");
  page.begin("request_success_total", "counter", "Requests that have ended.");
  for (const auto& [reason, count] : finished_)
    page.value("request_success_total", static_cast<double>(count), ",finished_reason=\"" + reason + "\"");
  page.histogram("request_prompt_tokens", request_prompt_tokens_, "Prefill tokens of a request.");
  page.histogram("request_generation_tokens", request_generation_tokens_, "Generation tokens of a request.");
  page.histogram("time_to_first_token_seconds", ttft_, "Time to first token in seconds.");
  page.histogram("inter_token_latency_seconds", inter_token_latency_, "Inter-token latency in seconds.");
  page.histogram("time_per_output_token_seconds", inter_token_latency_,
                 "Time per output token in seconds: the older name of inter_token_latency_seconds.");
  page.histogram("e2e_request_latency_seconds", e2e_latency_, "E2E request latency in seconds.");
  return page.take();
}

}  // namespace dculab::http
