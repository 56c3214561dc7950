#include "engine/measure/alone_latency.hpp"

#include <algorithm>
#include <cmath>

#include "engine/generate/engine_core.hpp"
#include "engine/generate/wall_clock.hpp"

namespace dculab::engine {
namespace {

constexpr int kPrompts = 4;  // lengths that are measured
constexpr int kRepeats = 3;  // of each, of which the median counts

struct Lengths {
  int shortest_prompt = kLongestContext, longest_prompt = 1, longest_output = 1;
};

[[nodiscard]] Lengths lengths_of(const RequestWorkload& workload) {
  Lengths lengths;
  RequestSource source(workload);
  while (const auto request = source.next()) {
    const int prompt = static_cast<int>(request->prompt_token_ids.size());
    lengths.shortest_prompt = std::min(lengths.shortest_prompt, prompt);
    lengths.longest_prompt = std::max(lengths.longest_prompt, prompt);
    lengths.longest_output = std::max(lengths.longest_output, request->max_tokens);
  }
  return lengths;
}

// In equal ratios.
[[nodiscard]] std::vector<int> prompts_between(int shortest, int longest) {
  std::vector<int> prompts;
  for (int index = 0; index < kPrompts; ++index) {
    const double share = static_cast<double>(index) / (kPrompts - 1);
    const int prompt =
        static_cast<int>(std::lround(shortest * std::pow(static_cast<double>(longest) / shortest, share)));
    if (prompts.empty() || prompt > prompts.back()) prompts.push_back(prompt);
  }
  return prompts;
}

[[nodiscard]] std::vector<Seconds> serve_alone(OpenModel& model, const EngineOptions& options,
                                               const RequestWorkload& workload) {
  WallClock clock;
  std::vector<Seconds> until_token;
  const auto keep = [&](const Sequence& sequence) {
    for (const Seconds time : sequence.token_times) until_token.push_back(time - sequence.request.arrival);
  };
  EngineCore core(model, options, clock, RequestRecords::drop, {.on_finished = keep});
  RequestSource source(workload);
  core.loop().run(source);
  return until_token;
}

// Token by token.
[[nodiscard]] std::vector<Seconds> median_of(const std::vector<std::vector<Seconds>>& repeats) {
  std::vector<Seconds> medians(repeats.front().size());
  for (std::size_t token = 0; token < medians.size(); ++token) {
    std::vector<Seconds> values;
    for (const auto& repeat : repeats) values.push_back(repeat[token]);
    std::ranges::sort(values);
    medians[token] = values[values.size() / 2];
  }
  return medians;
}

[[nodiscard]] Seconds at(const MeasuredAloneLatency::Run& run, int output_tokens) {
  const std::vector<Seconds>& times = run.until_token;
  const auto wanted = static_cast<std::size_t>(output_tokens);
  if (wanted <= times.size()) return times[wanted - 1];
  // The model's context ends before: as fast as its last tokens.
  const std::size_t last = times.size() - 1, before = last / 2;
  if (last == before) return times[last];
  const Seconds each = (times[last] - times[before]) / static_cast<double>(last - before);
  return times[last] + each * static_cast<double>(wanted - times.size());
}

}  // namespace

MeasuredAloneLatency::MeasuredAloneLatency(OpenModel& model, const EngineOptions& options,
                                           const RequestWorkload& workload) {
  const Lengths lengths = lengths_of(workload);
  for (const int prompt : prompts_between(lengths.shortest_prompt, lengths.longest_prompt)) {
    const int room = model.executor->shape().max_position_embeddings - prompt;
    RequestWorkload alone{.requests = 1, .vocab_size = workload.vocab_size, .sampling = workload.sampling};
    alone.prompt = {.center = static_cast<double>(prompt)};
    alone.output = {.center = static_cast<double>(std::clamp(lengths.longest_output, 1, std::max(1, room)))};
    std::vector<std::vector<Seconds>> repeats;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      ++alone.seed;  // another prompt, of which nothing is cached
      repeats.push_back(serve_alone(model, options, alone));
    }
    runs_.push_back({.prompt_tokens = prompt, .until_token = median_of(repeats)});
  }
}

Seconds MeasuredAloneLatency::latency(int prompt_tokens, int output_tokens) const {
  const auto next = std::ranges::lower_bound(runs_, prompt_tokens, {}, &Run::prompt_tokens);
  if (next == runs_.begin()) return at(runs_.front(), output_tokens);
  if (next == runs_.end()) return at(runs_.back(), output_tokens);
  const Run& before = *(next - 1);
  const double share = static_cast<double>(prompt_tokens - before.prompt_tokens) /
                       static_cast<double>(next->prompt_tokens - before.prompt_tokens);
  const Seconds low = at(before, output_tokens), high = at(*next, output_tokens);
  return low + (high - low) * share;
}

}  // namespace dculab::engine
