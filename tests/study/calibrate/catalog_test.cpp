// What points teach, as files: one number whether it is used at once or read back.
#include "study/calibrate/catalog.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "study/validate/points_set.hpp"
#include "study/validate/published_spread.hpp"
#include "study/validate/validation.hpp"
#include "tests/files/temporary_folder.hpp"
#include "tests/study/published_points.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

// DCULAB_DATA for as long as it lives.
class DataFolder {
 public:
  explicit DataFolder(const std::string& folder) { ::setenv("DCULAB_DATA", folder.c_str(), 1); }
  ~DataFolder() {
    if (before_) ::setenv("DCULAB_DATA", before_->c_str(), 1);
    if (!before_) ::unsetenv("DCULAB_DATA");
  }
  DataFolder(const DataFolder&) = delete;
  DataFolder& operator=(const DataFolder&) = delete;

 private:
  std::optional<std::string> before_ =
      std::getenv("DCULAB_DATA") == nullptr ? std::nullopt : std::optional<std::string>(std::getenv("DCULAB_DATA"));
};

TEST_CASE("files that calibrate writes predict what validate predicts after the same points", "[once]") {
  const files::test::TemporaryFolder folder;
  const std::string data = (folder.path() / "data").string();
  const Scores at_once = validate_points({kPoints}, {kPoints}).scores;
  PointSet set = read_point_set({kPoints});
  const std::vector<std::filesystem::path> files = learned_catalog(learn_from(set)).write(data);
  CHECK(std::ranges::count(files, std::filesystem::path("hwmodels/mi300x.yaml")) == 1);
  CHECK(std::ranges::count(files, std::filesystem::path("stacks/vllm-rocm.yaml")) == 1);
  const DataFolder from(data);
  const Scores read_back = validate_points({kPoints}).scores;
  REQUIRE(read_back.rows.size() == at_once.rows.size());
  for (std::size_t row = 0; row < at_once.rows.size(); ++row) {
    CAPTURE(at_once.rows[row].id);
    CHECK(read_back.rows[row].predicted == at_once.rows[row].predicted);
    CHECK(read_back.rows[row].low == at_once.rows[row].low);
    CHECK(read_back.rows[row].high == at_once.rows[row].high);
  }
  PointSet again = read_point_set({kPoints});
  CHECK_THROWS_WITH(learn_from(again), ContainsSubstring("has learned from points already"));
}

TEST_CASE("rows that other kernels stand for are scored and teach nothing") {
  PointSet set = read_point_set({DCULAB_SOURCE_DIR "/tests/data/measured_points_2.csv"});
  std::erase_if(set.points, [](const ReadPoint& read) { return read.priced.silent.empty(); });
  CHECK(std::ranges::any_of(set.points, [](const ReadPoint& read) { return read.point.machine == "bw1101"; }));
  CHECK(std::ranges::any_of(set.points, [](const ReadPoint& read) { return read.point.machine == "k100-ai"; }));
  CHECK(std::ranges::all_of(set.points, &ReadPoint::is_scored));
  CHECK_THROWS_WITH(learn_from(set), ContainsSubstring("no point to learn from"));
}

TEST_CASE("what nothing was learned of stays as its file has it", "[once]") {
  const files::test::TemporaryFolder folder;
  PointSet set = read_point_set({kPoints});
  std::erase_if(set.points, [](const ReadPoint& read) { return read.point.machine != "mi300x"; });
  Catalog catalog = learned_catalog(learn_from(set));
  CHECK_FALSE(catalog.machine("h100-sxm").calibration);
  const sim::Machine& sister = catalog.machine("mi325x");
  REQUIRE(sister.calibration);
  CHECK(sister.calibration->intervals.at("vllm-rocm").rows == 0);
  CHECK(sister.sources.at("sustained.dram_bandwidth").starts_with("inferred: "));
  const std::string source = catalog.machine("mi300x").sources.at("sustained.dram_bandwidth");
  CHECK_THAT(source,
             ContainsSubstring("measured: dculab calibrate") && ContainsSubstring("; began at measured: copy 4130"));
  // No row depends on it: nothing here is driven out of a cache by other tenants.
  CHECK_FALSE(catalog.machine("mi300x").sources.contains("sustained.refill_bandwidth"));
  const auto stack = std::ranges::find(catalog.stacks(), "sglang-cuda", &sim::Stack::name);
  REQUIRE(stack != catalog.stacks().end());
  CHECK_FALSE(stack->host_per_step);
  CHECK_THROWS_WITH(catalog.machine("none"), ContainsSubstring("no machine 'none' under hwmodels"));
}

// The rows of published_spreads() as docs/reference/points-file.md has them.
std::vector<std::string> spread_table() {
  std::vector<std::string> lines;
  for (const PublishedSpread& row : published_spreads()) {
    std::string when;
    if (!row.says.empty()) when = "notes say \"" + std::string(row.says) + "\"";
    if (!row.machine.empty()) when += (when.empty() ? "" : ", ") + ("machine `" + std::string(row.machine)) + "…`";
    std::array<char, 8> spread{};
    std::snprintf(spread.data(), spread.size(), "%.2f", row.spread);
    lines.push_back("| " + std::string(row.source.empty() ? "any" : row.source) + " | " + when + " | " + spread.data() +
                    " | " + std::string(row.why) + " | " + (row.holds_call ? "yes" : "") + " | " +
                    (row.starts_cold ? "yes" : "") + " |");
  }
  return lines;
}

std::vector<std::string> table_of_page() {
  std::ifstream page(DCULAB_SOURCE_DIR "/docs/reference/points-file.md");
  std::vector<std::string> lines;
  bool in_table = false;
  for (std::string line; std::getline(page, line);) {
    if (in_table && line.starts_with("| ")) lines.push_back(line);
    in_table = in_table || line.starts_with("| source begins with");
  }
  return lines;
}

TEST_CASE("sources are trusted as far as they say how they measured") {
  for (const PublishedSpread& row : published_spreads()) {
    CHECK(row.spread > 0);
    CHECK_FALSE(row.why.empty());
  }
  CHECK(spread_table() == table_of_page());
  config::PublishedPoint point;
  CHECK(published_spread(point) == 0);
  point.source = "github.com/argonne-lcf/LLM-Inference-Bench@1234 a.csv";
  CHECK(published_spread(point) == 0.10);
  CHECK_FALSE(holds_call(point));
  point.machine = "mi250-gcd";
  CHECK(published_spread(point) == 0.50);
  point.notes = "event-timed kernel";
  CHECK(holds_call(point));
  point.source = "github.com/ai-dynamo/aiconfigurator@1234 a.txt";
  point.notes = "";
  CHECK(holds_call(point));
  point.source = "somewhere";
  point.notes = "Head counts NOT STATED";
  CHECK(published_spread(point) == 0.20);
}

}  // namespace
}  // namespace dculab::study
