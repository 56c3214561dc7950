// Measured steps, as the engine writes them.
#include <string>

#include "config/trace_file.hpp"
#include "tests/fuzz/targets.hpp"

namespace dculab::fuzz {

void read_trace_lines(std::string_view input) {
  const Trace trace = config::read_trace("fuzz.jsonl", std::string(input));
  for (const TraceStep& step : trace.steps) {
    require(step.duration > Seconds(0), "a step takes time");
    require(!step.batch.sequences.empty(), "a step has sequences");
    require(step.op_names.size() == step.op_durations.size(), "every op has its time");
    require(problems(step.model).empty() && problems(step.options).empty(), "a step can be planned");
  }
  const std::string text = config::trace_json_lines(trace);
  require(config::trace_json_lines(read_back([&] { return config::read_trace("again.jsonl", text); })) == text,
          "a trace is read back as written");
}

}  // namespace dculab::fuzz
