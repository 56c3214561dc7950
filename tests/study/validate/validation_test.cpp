// Published points as they are priced and scored; tests/cli/validate_test.py holds what the command shows of them.
#include "study/validate/validation.hpp"

#include <algorithm>
#include <tuple>

#include "core/error.hpp"
#include "study/validate/leave_one_out.hpp"
#include "study/validate/points_set.hpp"
#include "tests/files/temporary_folder.hpp"
#include "tests/study/published_points.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

constexpr const char* kHeader =
    "id,kind,machine,devices,software,model,weights,kv_dtype,kv_block_size,batch,prompt_tokens,output_tokens,"
    "context_tokens,m,n,k,heads,kv_heads,head_size,value,unit,source,notes\n";

TEST_CASE("every published point is scored, or says why not", "[once]") {
  const PointSet set = read_point_set({kPoints});
  const Validation validation = validate_points({kPoints});
  const Scores& scores = validation.scores;
  CHECK(set.points.size() == scores.rows.size() + scores.refused.size() + scores.unpriced.size());
  CHECK(scores.rows.size() > 200);
  CHECK(validation.calibration == nullptr);
  std::size_t priced = 0;
  for (const auto& [name, part] : validation.priced) priced += part.measured_runs.size();
  CHECK(priced == scores.rows.size());
  for (const ScoredRow& row : scores.rows) {
    INFO(row.id);
    CHECK(row.low <= row.predicted);
    CHECK(row.predicted <= row.high);
    CHECK(row.basis != "measured");
  }
}

TEST_CASE("points that cannot be predicted, or be true, are left out with the reason") {
  const files::test::TemporaryFolder folder;
  const std::string file =
      folder.write("points.csv", std::string(kHeader) +
                                     "a,matmul,z100,1,rocBLAS,,fp16,,,,,,,4096,4096,4096,,,,1,s,test,\n"
                                     "b,matmul,z101,1,rocBLAS,,fp16,,,,,,,4096,4096,4096,,,,1,s,test,\n"
                                     "c,matmul,z100,1,rocBLAS,,fp16,,,,,,,4096,4096,4096,,,,1e-9,s,test,\n");
  const Scores scores = validate_points({file}).scores;
  REQUIRE(scores.rows.size() == 1);
  REQUIRE(scores.unpriced.size() == 1);
  REQUIRE(scores.refused.size() == 1);
  CHECK_THAT(scores.unpriced[0].reason, ContainsSubstring("no machine 'z101' under hwmodels"));
  CHECK_THAT(scores.refused[0].reason, ContainsSubstring("below the"));
  const std::string none = folder.write("none.csv", kHeader);
  CHECK_THROWS_WITH(validate_points({none}), ContainsSubstring("has no points"));
}

TEST_CASE("a source is its repository, or all that is said of another") {
  config::PublishedPoint point;
  point.source = "github.com/ROCm/aiter@e404860 aiter/configs/tuned.csv";
  CHECK(source_of(point) == "github.com/ROCm/aiter");
  point.source = "github.com/ROCm/aiter/pull/801 (second table)";
  CHECK(source_of(point) == "github.com/ROCm/aiter/pull/801");
  point.source = "public notes of one card";
  CHECK(source_of(point) == point.source);
}

TEST_CASE("what a calibration has seen is said to be measured") {
  const files::test::TemporaryFolder folder;
  std::string rows = kHeader;
  for (const auto& [id, size, value] : {std::tuple{"a", "2048", "0.002"}, std::tuple{"b", "4096", "0.014"}})
    rows += std::string(id) + ",matmul,z100,1,rocBLAS,,fp16,,,,,,," + size + "," + size + "," + size + ",,,," + value +
            ",s,test,\n";
  const std::string file = folder.write("points.csv", rows);
  const Validation validation = validate_points({file}, {file});
  REQUIRE(validation.calibration);
  CHECK(validation.calibration->points() == 2);
  CHECK(validation.seen == 2);
  CHECK(std::ranges::all_of(validation.scores.rows, [](const ScoredRow& row) { return row.basis == "measured"; }));
  PointSet set = read_point_set({file});
  CHECK_THROWS_WITH(predict_left_out(set, "machine"), ContainsSubstring("fewer than two"));
}

TEST_CASE("leaving a group out predicts each of its points once", "[once]") {
  PointSet set = read_point_set({kPoints});
  const std::vector<LeftOutPoint> points = predict_left_out(set, "family");
  const auto scored = std::ranges::count_if(set.points, [](const ReadPoint& read) { return read.is_scored(); });
  CHECK(points.size() == static_cast<std::size_t>(scored));
  const std::vector<LeftOutScore> scores = score_left_out(points);
  CHECK(scores.back().left_out == "all");
  CHECK(scores.back().kind == "all");
  CHECK(scores.back().ours.count == scored);
}

TEST_CASE("no source makes another vendor's predictions worse by more than a point", "[.][long][once]") {
  PointSet set = read_point_set({kPoints, DCULAB_SOURCE_DIR "/tests/data/measured_points_2.csv"});
  std::vector<SourceEffect> effects;
  const auto points = predict_left_out(set, "source", &effects);
  CHECK(points.size() > 1000);
  CHECK(effects.size() > 60);
  for (const SourceEffect& effect : effects) {
    CAPTURE(effect.source, effect.vendor);
    CHECK(effect.with - effect.without < 0.01);
  }
}

}  // namespace
}  // namespace dculab::study
