#include "study/validate/published_spread.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "core/letter_case.hpp"

namespace dculab::study {
namespace {

// clang-format off
constexpr auto kSpreads = std::to_array<PublishedSpread>({
    {"github.com/wangzy0327/hblas-bench", "", "", 0.15, "one timed call after five", true},
    {"github.com/wangzy0327/gemm-bench", "", "", 0.20, "the clock was not recorded; days differ by up to 25 %"},
    {"github.com/HYGON-AI/hcu-train-simulator", "bus bandwidth", "", 0.30, "if the column is algorithm bandwidth, times are up to 1.75 times shorter"},
    {"github.com/HYGON-AI/hcu-train-simulator", "", "", 0.10, "means of a vendor's profile"},
    {"github.com/IceFerryLing", "", "", 0.15, "the clock was not recorded"},
    {"github.com/cspool", "", "", 0.15, "the clock was not recorded"},
    {"github.com/ZhangFanYi", "", "", 0.20, "an internal test; the card's data sheet is not public"},
    {"github.com/Hong-agent/K100LC-kernels", "", "", 0.30, "hand-written kernels, not the vendor's"},
    {"github.com/ROCm/rocBLAS", "", "", 0.15, "the best of a tuner's kernels, in a loop"},
    {"github.com/ROCm/aiter", "", "", 0.25, "kernels alone; whether the L2 was warm is not stated"},
    {"github.com/ROCm/hipBLASLt", "", "", 0.25, "the best of a tuner's kernels; whether the L2 was warm is not stated"},
    {"github.com/ggml-org/llama.cpp/pull/14624", "", "", 0.25, "kernels alone; whether the L2 was warm is not stated"},
    {"github.com/argonne-lcf/LLM-Inference-Bench", "", "mi250", 0.50, "a device may be a die or a card of two"},
    {"github.com/argonne-lcf/LLM-Inference-Bench", "", "", 0.10, "runs of one day"},
    {"", "assumed", "", 0.20, "a shape or the card is not stated"},
    {"", "not stated", "", 0.20, "a shape or the card is not stated"},
    {"", "taken as", "", 0.20, "a shape or the card is not stated"},
    {"", "low confidence", "", 0.50, "the source doubts it"},
    {"", "overclocked", "", 0.30, "not as the machine's file has it"},
    {"", "host not quiet", "", 0.20, "others ran beside it"},
    {"github.com/ai-dynamo/aiconfigurator", "", "", 0.05, "six replays of a graph of one layer (collector/helper.py)", true},
    {"github.com/microsoft/onnxruntime/pull/21414", "", "", 0.05, "nvbench, cold L2: events around each call, after a flush", true, true},
    {"github.com/vllm-project/flash-attention/pull/63", "", "", 0.20, "not stated how; taken as hopper/benchmark_attn.py there times, by Triton's do_bench", true, true},
    {"", "do_bench", "", 0.05, "events around each call, after a flush of the L2", true, true},
    {"", "cache flushed", "", 0.05, "each call begins with a cold L2", false, true},
    {"", "event-tim", "", 0.50, "no less than the timer of events tells apart", true},
    {"", "floor of the timer", "", 0.50, "no less than the timer of events tells apart", true},
});
// clang-format on

[[nodiscard]] bool meets(const config::PublishedPoint& point, const PublishedSpread& row) {
  return point.source.starts_with(row.source) && point.machine.starts_with(row.machine) &&
         lower_case(point.notes).find(row.says) != std::string::npos;
}

}  // namespace

std::span<const PublishedSpread> published_spreads() { return kSpreads; }

double published_spread(const config::PublishedPoint& point) {
  double largest = 0;
  for (const PublishedSpread& row : kSpreads)
    if (meets(point, row)) largest = std::max(largest, row.spread);
  return largest;
}

bool holds_call(const config::PublishedPoint& point) {
  return std::ranges::any_of(kSpreads, [&](const PublishedSpread& row) { return row.holds_call && meets(point, row); });
}

bool starts_cold(const config::PublishedPoint& point) {
  return std::ranges::any_of(kSpreads,
                             [&](const PublishedSpread& row) { return row.starts_cold && meets(point, row); });
}

}  // namespace dculab::study
