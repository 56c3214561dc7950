#include "cli/output/expert_report.hpp"

namespace dculab::cli {

std::vector<std::string> expert_columns() { return {"experts/step", "hottest"}; }

std::vector<Cell> expert_cells(const ExpertHistogram& experts) {
  if (experts.is_empty()) return {Cell("-"), Cell("-")};
  return {Cell(number(experts.distinct_experts()), experts.distinct_experts()),
          Cell(percent(experts.hottest_share()), experts.hottest_share())};
}

std::string expert_heading() {
  return "experts/step: distinct experts of a layer that a step touched; hottest: the share of the most chosen expert "
         "in the choices of its layer; means over the layers";
}

Json expert_json(const ExpertHistogram& experts) {
  return {{"distinct_per_step", experts.distinct_experts()},
          {"hottest_share", experts.hottest_share()},
          {"choices", experts.choices}};
}

}  // namespace dculab::cli
