#include "study/decide/drawn_requests.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/study/ordered_chunks.hpp"

namespace dculab::study {
namespace {

constexpr std::uint64_t kDraws = 4;
constexpr double kFewDraws = 2.353 / 1.645;  // Student's t of three degrees of freedom over the normal quantile, 90 %

[[nodiscard]] bool is_fixed(const LengthDistribution& length) { return length.kind == LengthKind::fixed; }

}  // namespace

std::vector<RequestWorkload> draws_of(const RequestWorkload& workload) {
  const bool draws_lengths = workload.recorded.empty() && !(is_fixed(workload.prompt) && is_fixed(workload.output));
  std::vector<RequestWorkload> draws{workload};
  if (!draws_lengths && workload.arrival != ArrivalKind::gamma) return draws;
  for (std::uint64_t draw = 1; draw < kDraws; ++draw) {
    draws.push_back(workload);
    draws.back().seed += draw;
  }
  return draws;
}

Evaluated over_draws(std::string value, std::span<const double> figures) {
  Evaluated result{.value = std::move(value), .figure = 0};
  if (figures.empty() || std::ranges::any_of(figures, [](double figure) { return !(figure > 0); })) return result;
  const auto count = static_cast<double>(figures.size());
  double mean = 0;
  for (const double figure : figures) mean += std::log(figure) / count;
  result.figure = std::exp(mean);
  if (figures.size() > 1)
    for (const double figure : figures)
      result.shifts.push_back(kFewDraws * (std::log(figure) - mean) / std::sqrt(count * (count - 1)));
  return result;
}

std::optional<DrawnVerdict> decide_over_draws(const std::vector<std::string>& choices, std::size_t draws,
                                              const std::function<DrawnFigure()>& make_figure, int threads) {
  std::vector<std::vector<double>> figures(choices.size(), std::vector<double>(draws));
  const auto make_worker = [&]() -> sim::ChunkWorker {
    return [&, figure = make_figure()](std::uint64_t chunk) {
      figures[chunk / draws][chunk % draws] = figure(chunk / draws, chunk % draws);
      return std::string();
    };
  };
  sim::work_in_order({0, choices.size() * draws}, threads, make_worker, [](std::uint64_t, const std::string&) {});
  DrawnVerdict result;
  for (std::size_t choice = 0; choice < choices.size(); ++choice)
    result.evaluated.push_back(over_draws(choices[choice], figures[choice]));
  const auto verdict = decide(result.evaluated, {.resolution = kServedResolution, .given_up = 0});
  if (!verdict) return std::nullopt;
  result.verdict = *verdict;
  return result;
}

}  // namespace dculab::study
