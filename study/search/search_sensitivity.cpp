#include "study/search/search_sensitivity.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <vector>

#include "core/error.hpp"
#include "sim/study/ordered_chunks.hpp"
#include "sim/study/recommend.hpp"
#include "study/decide/objective.hpp"
#include "study/scenario/axis_title.hpp"
#include "study/search/point_pricer.hpp"

namespace dculab::study {
namespace {

// Of served requests: batches form otherwise when a step takes a little longer, and that alone moves their figures. One
// request more or less that meets a service level moves what counts these by as much as there are requests.
constexpr double kServedTie = 0.01;
constexpr double kServedFlipResolution = 0.01;
constexpr double kServedElasticityStep = 0.05;

struct Contender {
  SweepCase asked;
  std::string label;
  bool moves = true;  // its machine is the one whose figures change
};

[[nodiscard]] bool is_same(const SweepCase& a, const SweepCase& b) {
  const auto& left = a.scenario.machine_figures;
  const auto& right = b.scenario.machine_figures;
  return a.scenario.machines == b.scenario.machines &&
         std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const Node& x, const Node& y) { return x.key == y.key && x.text == y.text; });
}

// The best first.
[[nodiscard]] std::vector<Contender> contenders_of(const SweepSpace& space, const SearchSummary& summary) {
  PointPricer pricer(space);
  const std::uint64_t first = summary.best().front().number;
  const SweepCase best = pricer.at(first);
  std::vector<Contender> contenders;
  const auto add = [&](std::uint64_t number) {
    try {
      Contender contender{pricer.at(number), "", true};
      contender.moves = is_same(contender.asked, best);
      for (const auto& [key, value] : space.choices(number))
        contender.label += (contender.label.empty() ? "" : ", ") + axis_title(key) + " " + value;
      contenders.push_back(std::move(contender));
    } catch (const InputError&) {
      // There can be no such step or server, on no machine of this kind: what only this one cannot run is kept.
    }
  };
  add(first);
  for (const std::uint64_t number : summary.contenders())
    if (number != first) add(number);
  return contenders;
}

// How much better than the best another answer has to be.
[[nodiscard]] double tie_of(const SweepSpace& space, const SweepCase& best) {
  if (!space.is_served()) return sim::kStepTie;
  const std::string& metric = space.scenario().objective.metric;
  const bool counts = metric == "goodput" || metric == "share_within_slo";
  return counts ? std::max(kServedTie, 1.0 / best.requests.requests) : kServedTie;
}

// Which contender is the best on a changed machine.
class ContenderRanking {
 public:
  ContenderRanking(const SweepSpace& space, const std::vector<Contender>& contenders, int threads)
      : space_(space),
        contenders_(contenders),
        pricers_(static_cast<std::size_t>(threads)),
        unmoved_(contenders.size()),
        metric_(space.metric(space.scenario().objective.metric)),
        goal_(space.scenario().objective.goal),
        tie_(tie_of(space, contenders.front().asked)) {}

  [[nodiscard]] double tie() const { return tie_; }

  [[nodiscard]] sim::Answer answer(const sim::Machine& machine) {
    const std::vector<std::optional<double>> figures = figures_on(machine);
    sim::Answer answer{"nothing meets the constraints", 0};
    std::optional<double> best;  // as a cost
    for (std::size_t index = 0; index < figures.size(); ++index) {
      const std::optional<double>& figure = figures[index];
      // The one that is the best now stays so unless another is better by more than a tie.
      if (!figure || (best && cost(goal_, *figure) >= *best)) continue;
      best = cost(goal_, *figure) - (index == 0 ? tie_ * std::abs(*figure) : 0);
      answer = {contenders_[index].label, *figure};
    }
    return answer;
  }

 private:
  [[nodiscard]] std::vector<std::optional<double>> figures_on(const sim::Machine& machine) {
    std::vector<std::optional<double>> figures(contenders_.size());
    std::atomic<std::size_t> next = 0;
    const auto make_worker = [&]() -> sim::ChunkWorker {
      return [&, &pricer = pricers_.at(next++)](std::uint64_t index) {
        figures[index] = figure_of(index, machine, pricer);
        return std::string();
      };
    };
    sim::work_in_order({0, figures.size()}, static_cast<int>(pricers_.size()), make_worker,
                       [](std::uint64_t, const std::string&) {});
    return figures;
  }

  // On its own machine, which does not change, a contender is priced once.
  [[nodiscard]] std::optional<double> figure_of(std::size_t index, const sim::Machine& machine, CasePricer& pricer) {
    const Contender& contender = contenders_[index];
    if (contender.moves) return price(contender.asked, machine, pricer);
    if (!unmoved_[index]) unmoved_[index] = price(contender.asked, contender.asked.machine, pricer);
    return *unmoved_[index];
  }

  // Nothing where the contender cannot be there, has no figure that is asked about, or breaks a constraint.
  [[nodiscard]] std::optional<double> price(const SweepCase& asked, const sim::Machine& machine,
                                            CasePricer& pricer) try {
    const std::vector<double>& figures = pricer.price(asked, machine).figures;
    if (missing_metric(space_, figures) || !meets_constraints(space_, asked, figures)) return std::nullopt;
    return figures[metric_];
  } catch (const InputError&) {
    return std::nullopt;
  }

  const SweepSpace& space_;
  const std::vector<Contender>& contenders_;
  std::vector<CasePricer> pricers_;                            // one for each thread
  std::vector<std::optional<std::optional<double>>> unmoved_;  // by contender, once priced
  std::size_t metric_;
  config::Goal goal_;
  double tie_;
};

}  // namespace

SearchSensitivity search_sensitivity(const SweepSpace& space, const SearchSummary& summary, double within, int threads,
                                     const SearchProgress& progress) {
  const std::vector<Contender> contenders = contenders_of(space, summary);
  const bool few = !space.is_served();  // a step is priced in less time than a thread starts
  ContenderRanking ranking(space, contenders, few ? 1 : threads);
  const sim::Question question = [&ranking](const sim::Machine& machine) { return ranking.answer(machine); };
  sim::SensitivityOptions options;
  if (progress) options.progress = [&progress](double share) { progress("changing the machine", share); };
  if (space.is_served()) {
    options.flip_resolution = kServedFlipResolution;
    options.elasticity_step = kServedElasticityStep;
  }
  const sim::Machine& machine = contenders.front().asked.machine;
  return {machine,       question(machine).choice, sim::sensitivities(machine, question, within, options), within,
          ranking.tie(), contenders.size()};
}

}  // namespace dculab::study
