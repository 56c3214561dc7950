// What others measured: points that are predicted from one another, and served runs.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

const std::string kData = std::string(DCULAB_SOURCE_DIR) + "/tests/data/";

// The head of a table and those of its rows that contain `part`.
std::string rows_with(const std::string& file, const std::string& part) {
  std::istringstream lines(read(kData + file));
  std::string all, line;
  std::getline(lines, all);
  for (all += "\n"; std::getline(lines, line);)
    if (line.find(part) != std::string::npos) all += line + "\n";
  return all;
}

TEST_CASE("points of each machine and program are predicted from those of all others", "[main]") {
  const Folder folder;
  const std::string products = folder.write("products.csv", rows_with("published_points.csv", ",matmul,"));
  const Arguments asked{"validate", "--points", products, "--leave-one-out", "machine,software"};
  const Json left = run_for_json(asked)["leave_one_out"];
  REQUIRE(left.size() == 2);
  for (const auto& [by, answer] : left.items()) {
    INFO(by);
    REQUIRE(answer["points"].size() == 28);
    const Json& all = answer["scores"].back();
    CHECK(all["count"] == 28);
    std::vector<double> errors;
    for (const Json& point : answer["points"])
      errors.push_back(std::abs(point["predicted"].get<double>() / point["measured"].get<double>() - 1));
    std::ranges::sort(errors);
    CHECK(all["median_abs_error"].get<double>() == Approx((errors[13] + errors[14]) / 2));
  }
  const Finished table = run_dculab(asked);
  CHECK(table.exit_code == 0);
  CHECK_THAT(table.out, ContainsSubstring("Each machine predicted from all others") &&
                            ContainsSubstring("Each software predicted from all others"));
}

TEST_CASE("points teach files, with which they are predicted better than before", "[main]") {
  const Folder folder;
  const std::string products = folder.write("products.csv", rows_with("published_points.csv", ",matmul,"));
  const Finished table = run_dculab({"calibrate", "--points", products, "--output", folder.path("learned")});
  CHECK(table.exit_code == 0);
  CHECK_THAT(table.out, ContainsSubstring("calibrated on 28 points") && ContainsSubstring("DCULAB_DATA="));
  const Json answer = run_for_json({"calibrate", "--points", products, "--output", folder.path("again")});
  const Json &before = answer["before"]["all"], &after = answer["after"]["all"];
  CHECK(before["count"] == 28);
  CHECK(after["median_abs_error"].get<double>() < before["median_abs_error"].get<double>());
  const Json scored = run_for_json({"validate", "--points", products, "--calibrate-on", products});
  CHECK(scored["points"].size() == 28);
}

TEST_CASE("served runs of others stand beside what is simulated, and beside what their simulators said", "[main]") {
  const Folder folder;
  const std::string runs =
      folder.write("runs.csv", rows_with("serving_runs.csv", "2,vLLM 0.15.1,h100-sxm,2,codellama"));
  const Json answer = run_for_json({"validate", "--serving", runs});
  REQUIRE_FALSE(answer["rows"].empty());
  for (const Json& row : answer["rows"]) {
    const double measured = row["measured"], predicted = row["predicted"];
    CHECK(predicted > 0);
    CHECK(row["error"].get<double>() == Approx(predicted / measured - 1));
  }
  const Finished table = run_dculab({"validate", "--serving", runs});
  CHECK_THAT(table.out, ContainsSubstring("Our error of each run") && ContainsSubstring("llmservingsim"));
}

}  // namespace
}  // namespace dculab::cli::test
