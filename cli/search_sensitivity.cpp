#include "cli/search_sensitivity.hpp"

#include <optional>
#include <vector>

#include "cli/predicted_study.hpp"
#include "cli/progress.hpp"
#include "cli/sensitivity_report.hpp"
#include "core/error.hpp"

namespace dculab::cli {
namespace {

// Of served requests: batches form otherwise when a step takes a little longer, and that alone moves their figures.
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
                    [](const config::Node& x, const config::Node& y) { return x.key == y.key && x.text == y.text; });
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
      // There can be no such step or server, on no machine of this kind.
    }
  };
  add(first);
  for (const std::uint64_t number : summary.contenders())
    if (number != first) add(number);
  return contenders;
}

// Which contender is the best on a changed machine.
class Contest {
 public:
  Contest(const SweepSpace& space, const std::vector<Contender>& contenders)
      : space_(space),
        contenders_(contenders),
        metric_(space.metric(space.scenario().objective.metric)),
        sign_(space.scenario().objective.goal == config::Goal::minimize ? 1 : -1) {}

  [[nodiscard]] sim::Answer answer(const sim::Machine& machine) {
    const double tie = space_.is_served() ? kServedTie : 0;
    sim::Answer answer{"nothing meets the constraints", 0};
    std::optional<double> best;
    for (const Contender& each : contenders_) {
      const std::optional<double> figure = figure_of(each, machine);
      // The one that is the best now stays so unless another is better by more than a tie.
      const bool first = &each == &contenders_.front();
      if (!figure || (best && sign_ * *figure >= sign_ * *best)) continue;
      best = first ? *figure * (1 - sign_ * tie) : *figure;
      answer = {each.label, *figure};
    }
    return answer;
  }

 private:
  // Nothing where the contender cannot be there, or breaks a constraint.
  [[nodiscard]] std::optional<double> figure_of(const Contender& contender, const sim::Machine& machine) try {
    const std::vector<double>& figures =
        pricer_.price(contender.asked, contender.moves ? machine : contender.asked.machine).figures;
    if (!meets_constraints(space_, contender.asked, figures)) return std::nullopt;
    return figures[metric_];
  } catch (const InputError&) {
    return std::nullopt;
  }

  const SweepSpace& space_;
  const std::vector<Contender>& contenders_;
  CasePricer pricer_;
  std::size_t metric_;
  double sign_;
};

}  // namespace

void report_sensitivity(const SweepSpace& space, const SearchSummary& summary, double within, Report& report) {
  const std::vector<Contender> contenders = contenders_of(space, summary);
  Contest contest(space, contenders);
  const sim::Question question = [&contest](const sim::Machine& machine) { return contest.answer(machine); };
  ProgressBar bar;
  sim::SensitivityOptions options{.progress = [&bar](double share) { bar.update("changing the machine", share); }};
  if (space.is_served()) {
    options.flip_resolution = kServedFlipResolution;
    options.elasticity_step = kServedElasticityStep;
  }
  report.json["sensitivity"] = add_sensitivity(contenders.front().asked.machine, question, within,
                                               space.scenario().objective.metric, report, options);
  bar.clear();
  if (space.is_served())
    report.tables.back().notes.push_back(
        "another answer: one that is better by more than 1 %; less comes and goes with how batches happen to form. "
        "What 1 % more brings is taken from 5 % each way");
  if (contenders.size() < space.size())
    report.tables.back().notes.push_back("among " + std::to_string(contenders.size()) + " of " +
                                         std::to_string(space.size()) +
                                         " points: the best ones, and the best with each value");
}

}  // namespace dculab::cli
