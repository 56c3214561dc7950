// All-reduces as others measured them, by the stacks' kernels on the shipped machines:
// tests/data/all_reduce_points.csv.
#include <algorithm>
#include <cmath>
#include <map>

#include "config/csv_rows.hpp"
#include "config/map_reader.hpp"
#include "files/input.hpp"
#include "sim/cost/step_price.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/stacks.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

// Predicted / measured, by stack and machine.
using Ratios = std::map<std::pair<std::string, std::string>, std::vector<double>>;

[[nodiscard]] double ratio_of(const Node& row) {
  sim::Machine machine = resolve_machine(row.find("machine")->text);
  machine.stack = resolve_stack(row.find("stack")->text, machine);
  Op op;
  op.kind = OpKind::all_reduce;
  op.devices = std::stoi(row.find("devices")->text);
  op.add({OperandRole::output, Bytes(std::stod(row.find("bytes")->text)), {}});
  return sim::price_op(machine, {}, op, {}).seconds.value() / (1e-6 * std::stod(row.find("microseconds")->text));
}

[[nodiscard]] Ratios measured_ratios() {
  const std::string file = DCULAB_SOURCE_DIR "/tests/data/all_reduce_points.csv";
  config::ProblemList problems(file);
  Ratios ratios;
  for (const Node& row : config::csv_rows(file, files::read_text(file, files::kLargestText), problems))
    ratios[{row.find("stack")->text, row.find("machine")->text}].push_back(ratio_of(row));
  problems.throw_if_any();
  return ratios;
}

[[nodiscard]] double error_at(std::vector<double> ratios, double quantile) {
  for (double& ratio : ratios) ratio = std::abs(std::log(ratio));
  std::ranges::sort(ratios);
  return std::exp(ratios[static_cast<std::size_t>(quantile * static_cast<double>(ratios.size() - 1))]) - 1;
}

TEST_CASE("all-reduces take what others measured") {
  const Ratios all = measured_ratios();
  CHECK(all.size() == 9);
  for (const auto& [where, ratios] : all) {
    CAPTURE(where.first, where.second, ratios);
    CHECK(error_at(ratios, 0.5) < 0.12);
    CHECK(error_at(ratios, 0.9) < 0.30);
  }
}

}  // namespace
}  // namespace dculab::study
