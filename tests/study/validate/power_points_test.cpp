// Watts and joules that others measured while requests were decoded, beside predicted ones:
// tests/data/power_points.csv.
//
// A step of `batch` sequences, each with the mean context of its time in the batch: that of an answer of L tokens is
// E[L^2] / 2 E[L], from the published histogram of answers; prompts, of which no length is published, are left out.
#include <algorithm>
#include <cmath>
#include <map>

#include "config/csv_rows.hpp"
#include "files/input.hpp"
#include "study/answer/prediction.hpp"
#include "study/scenario/step_question.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

// Predicted / measured.
struct PowerRatios {
  double watts = 0, joules = 0;
  double joules_in_measured_time = 0;  // what the energy is off where the time is not
};

[[nodiscard]] double cell(const Node& row, const char* column) { return std::stod(row.find(column)->text); }

[[nodiscard]] PowerRatios ratios_of(const Node& row) {
  StepQuestion question;
  question.model = row.find("model")->text;
  question.machine = row.find("machine")->text;
  question.stack = "vllm-cuda";
  question.batch = static_cast<int>(cell(row, "batch"));
  question.context = static_cast<int>(cell(row, "context_tokens"));
  question.set = {"deployment.tensor_parallel_size=" + row.find("tensor_parallel_size")->text};
  const Prediction found = predict(step_scenario(question), InputSensitivities::left_out);
  const double joules = found.cost.energy.value().value(), idle = found.machine.power.idle->value();
  const double devices = found.cost.devices, seconds = found.price.seconds.value();
  const double measured_seconds = 1e-3 * cell(row, "tpot_ms");
  const double measured_joules = cell(row, "joules_per_token") * question.batch;
  return {.watts = joules / devices / seconds / cell(row, "watts"),
          .joules = joules / measured_joules,
          .joules_in_measured_time = (joules + devices * idle * (measured_seconds - seconds)) / measured_joules};
}

[[nodiscard]] double power_error_at(std::vector<double> ratios, double quantile) {
  for (double& ratio : ratios) ratio = std::abs(std::log(ratio));
  std::ranges::sort(ratios);
  return std::exp(ratios[static_cast<std::size_t>(quantile * static_cast<double>(ratios.size() - 1))]) - 1;
}

struct PowerErrors {
  std::vector<double> watts, joules, joules_in_measured_time;
};

[[nodiscard]] std::map<std::string, PowerErrors> errors_by_machine() {
  const std::string file = DCULAB_SOURCE_DIR "/tests/data/power_points.csv";
  config::ProblemList problems(file);
  std::map<std::string, PowerErrors> errors;
  for (const Node& row : config::csv_rows(file, files::read_text(file, files::kLargestText), problems)) {
    const PowerRatios ratios = ratios_of(row);
    PowerErrors& of_machine = errors[row.find("machine")->text];
    of_machine.watts.push_back(ratios.watts);
    of_machine.joules.push_back(ratios.joules);
    of_machine.joules_in_measured_time.push_back(ratios.joules_in_measured_time);
  }
  problems.throw_if_any();
  return errors;
}

// B200's steps took three to seven times what is predicted, of a host that did not keep up: there the energy is
// compared that steps have in the time that was measured.
TEST_CASE("decodes draw the power that others measured", "[energy]") {
  const std::map<std::string, PowerErrors> errors = errors_by_machine();
  REQUIRE(errors.size() == 2);
  const PowerErrors &h100 = errors.at("h100-sxm"), &b200 = errors.at("b200");
  CAPTURE(h100.watts, h100.joules, h100.joules_in_measured_time, b200.watts, b200.joules_in_measured_time);
  CHECK(h100.watts.size() == 31);
  CHECK(power_error_at(h100.watts, 0.5) < 0.12);
  CHECK(power_error_at(h100.watts, 0.9) < 0.26);
  CHECK(power_error_at(h100.joules, 0.5) < 0.15);
  CHECK(power_error_at(h100.joules_in_measured_time, 0.5) < 0.15);
  CHECK(b200.watts.size() == 36);
  CHECK(power_error_at(b200.watts, 0.5) < 0.35);
  CHECK(power_error_at(b200.joules_in_measured_time, 0.5) < 0.18);
}

}  // namespace
}  // namespace dculab::study
