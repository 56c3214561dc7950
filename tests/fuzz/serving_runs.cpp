// Served runs as CSV.
#include <algorithm>
#include <string>

#include "config/serving_runs_file.hpp"
#include "tests/fuzz/targets.hpp"

namespace dculab::fuzz {

void read_serving_runs_csv(std::string_view input) {
  for (const config::ServedFigure& figure : config::read_serving_runs("fuzz.csv", std::string(input))) {
    require(figure.measured > Seconds{}, "what was measured took time");
    require(!name(figure.metric).empty(), "a metric is known");
    require(!figure.load.requests_per_second.empty(), "a run has stages");
    require(std::ranges::all_of(figure.load.requests_per_second, [](double rate) { return rate > 0; }),
            "requests come in each stage");
    for (const auto& [rival, time] : figure.predicted_by) require(time > Seconds{}, "a prediction takes time");
  }
}

}  // namespace dculab::fuzz
