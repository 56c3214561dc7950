#include "config/chrome_trace.hpp"

#include <cstdio>

namespace dculab::config {
namespace {

[[nodiscard]] std::string microseconds(Seconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", time.value() * 1e6);
  return text;
}

[[nodiscard]] std::string counter(const char* name, Seconds time, int value, int engine) {
  return R"({"ph": "C", "pid": )" + std::to_string(engine + 1) + R"(, "name": ")" + name + R"(", "ts": )" +
         microseconds(time) + R"(, "args": {"value": )" + std::to_string(value) + "}}";
}

}  // namespace

void ChromeTrace::add_event(const std::string& event) { events_ += (events_.empty() ? "\n" : ",\n") + event; }

void ChromeTrace::add(const ServedStep& step, int engine) {
  int decodes = 0;
  int prefill_tokens = 0;
  for (const SequenceSlice& slice : step.plan.batch.sequences) {
    if (slice.phase == Phase::decode)
      ++decodes;
    else
      prefill_tokens += slice.num_new_tokens;
  }
  const char* name = prefill_tokens == 0 ? "decode" : decodes == 0 ? "prefill" : "prefill and decode";
  add_event(R"({"ph": "X", "pid": )" + std::to_string(engine + 1) + R"(, "tid": 1, "name": ")" + name + R"(", "ts": )" +
            microseconds(step.begin) + R"(, "dur": )" + microseconds(step.end - step.begin) +
            R"(, "args": {"decodes": )" + std::to_string(decodes) + R"(, "prefill_tokens": )" +
            std::to_string(prefill_tokens) + "}}");
  const BlockPool& pool = step.scheduler.pool();
  add_event(counter("running", step.begin, step.scheduler.num_running(), engine));
  add_event(counter("waiting", step.begin, step.scheduler.num_waiting(), engine));
  add_event(counter("KV blocks used", step.begin, pool.num_blocks() - pool.num_free(), engine));
}

}  // namespace dculab::config
