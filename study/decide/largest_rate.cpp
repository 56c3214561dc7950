#include "study/decide/largest_rate.hpp"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "sim/study/ordered_chunks.hpp"

namespace dculab::study {
namespace {

constexpr int kSteps = 50;               // of the rate in closed form
constexpr std::size_t kMostLayouts = 4;  // that are simulated
constexpr int kLayoutsAtOnce = 2;        // whatever cores there are

// Rates of one layout, as numbers of steps.
class RateSearch {
 public:
  RateSearch(const Tried& tried, const AskedLoad& asked)
      : tried_(tried),
        asked_(asked),
        step_(tried.layout.replicas * tried.layout.served.output_tokens_per_second / asked.load.output_tokens /
              kSteps) {}

  // By few requests, more than `least` requests per second; 0: none.
  [[nodiscard]] int about(double least) {
    int good = 0, bad = kSteps + 1;
    if (least > 0) {
      good = static_cast<int>(least / step_) + 1;
      if (good >= bad || !is_served(good, Sample::few)) return 0;
    }
    while (bad - good > 1) {
      const int middle = good + (bad - good) / 2;
      (is_served(middle, Sample::few) ? good : bad) = middle;
    }
    return good;
  }

  // By many requests, no more than `most`; 0: none.
  [[nodiscard]] int decided(int most) {
    while (most > 0 && !is_served(most, Sample::many)) --most;
    return most;
  }

  [[nodiscard]] double rate(int steps) const { return steps * step_; }
  // At the rate that was tried last.
  [[nodiscard]] const std::optional<ReplicaService>& served() const { return served_; }

 private:
  [[nodiscard]] bool is_served(int steps, Sample sample) {
    const RequestWorkload workload = with_rate(asked_.workload, rate(steps));
    const AskedLoad asked{workload, asked_.load, asked_.slo, rate(steps), asked_.count_requests};
    served_ = best_service(tried_, asked, tried_.layout.replicas, sample);
    return served_ && served_->slo_attainment >= asked_.slo.share;
  }

  const Tried& tried_;
  const AskedLoad& asked_;
  const double step_;
  std::optional<ReplicaService> served_;
};

[[nodiscard]] std::vector<std::size_t> largest_in_closed_form(const std::vector<Tried>& tried) {
  const auto rate = [&tried](std::size_t index) {
    return -tried[index].layout.replicas * tried[index].layout.served.output_tokens_per_second;
  };
  std::vector<std::size_t> found;
  for (std::size_t index = 0; index < tried.size(); ++index)
    if (tried[index].layout.replicas > 0) found.push_back(index);
  std::ranges::stable_sort(found, {}, rate);
  found.resize(std::min(found.size(), kMostLayouts));
  return found;
}

}  // namespace

RequestWorkload with_rate(RequestWorkload workload, double requests_per_second) {
  workload.arrival = ArrivalKind::gamma;
  workload.requests_per_second = requests_per_second;
  return workload;
}

std::optional<LargestRate> largest_rate(std::vector<Tried>& tried, const AskedLoad& asked) {
  const std::vector<std::size_t> layouts = largest_in_closed_form(tried);
  std::vector<int> steps(layouts.size());
  std::vector<double> rates(layouts.size());
  const int cores = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kLayoutsAtOnce);
  for (std::size_t first = 0; first < layouts.size(); first += kLayoutsAtOnce) {
    const double least = first == 0 ? 0 : *std::ranges::max_element(rates);
    const auto make_worker = [&]() -> sim::ChunkWorker {
      return [&](std::uint64_t index) {
        RateSearch search(tried[layouts[index]], asked);
        steps[index] = search.about(least);
        rates[index] = search.rate(steps[index]);
        return std::string();
      };
    };
    const std::uint64_t end = std::min<std::uint64_t>(layouts.size(), first + kLayoutsAtOnce);
    sim::work_in_order({first, end}, cores, make_worker, [](std::uint64_t, const std::string&) {});
  }
  if (rates.empty()) return std::nullopt;
  const auto best = static_cast<std::size_t>(std::ranges::max_element(rates) - rates.begin());
  Tried& chosen = tried[layouts[best]];
  RateSearch search(chosen, asked);
  const int decided = search.decided(steps[best]);
  if (decided == 0) return std::nullopt;
  const LargestRate found{layouts[best], search.rate(decided)};
  take_service(chosen, *search.served());
  return found;
}

}  // namespace dculab::study
