// An imported profile as people and programs see it.
#include "present/study/import_report.hpp"

#include "config/profile/kernel_map.hpp"
#include "tests/present/document_errors.hpp"
#include "tests/support/catch.hpp"

namespace dculab::present {
namespace {

study::ImportedProfile small_import() {
  study::ImportedProfile import;
  import.profile.profiler = config::Profiler::rocprof;
  import.profile.kernels.resize(30);
  import.work.context = 200;
  import.work.growth = 1;
  TraceStep row;
  row.id = "a step";
  row.duration = Seconds(10e-3);
  row.repeats = 3;
  row.op_names = {"qkv_proj", "o_proj"};
  row.op_durations = {Seconds(4e-3), Seconds(0)};
  row.batch = uniform_batch(Phase::decode, 1, 201);
  import.steps.rows = {row};
  config::ImportSummary& summary = import.steps.summary;
  summary.steps_found = 4;
  summary.steps_imported = 3;
  summary.op_time = Seconds(9e-3);
  summary.other_time = Seconds(1e-3);
  summary.kernels_per_step = {2, 0};
  for (int index = 0; index < 9; ++index)
    summary.others.push_back({std::string(80, 'k') + std::to_string(index), "copy", 1, Seconds(1e-4)});
  return import;
}

TEST_CASE("the first row's ops and what is left of it add up to its time") {
  const Report report = import_report(small_import());
  CHECK(test::document_errors(report) == std::vector<std::string>{});
  const Table& ops = report.tables.at(0);
  REQUIRE(ops.rows.size() == 3);
  CHECK(ops.rows[0][1] == "2.00");
  CHECK(ops.rows[1][1] == "fused");
  CHECK(ops.rows[2][0] == "other kernels and gaps");
  CHECK(ops.rows[2][2] == "6 ms");
  CHECK(ops.rows[2][3] == "60 %");
  CHECK_THAT(report.heading.at(2), ContainsSubstring("10.0 % of the kernel time"));
  CHECK(report.json["other_share"].get<double>() == Approx(0.1));
  CHECK(report.json["rows"][0]["ops"][1]["kernels"] == 0);
}

TEST_CASE("eight kernels that serve no op are shown, names of 72 characters at most, and all are in JSON") {
  const Report report = import_report(small_import());
  const Table& others = report.tables.at(1);
  CHECK(others.rows.size() == 8);
  CHECK(others.rows[0][0] == std::string(69, 'k') + "...");
  CHECK(others.notes.at(0) == "... (9 names)");
  CHECK(report.json["others"].size() == 9);
  study::ImportedProfile none = small_import();
  none.steps.summary.others.clear();
  CHECK(import_report(none).tables.size() == 1);
}

TEST_CASE("steps of both phases under one name are warned of") {
  study::ImportedProfile import = small_import();
  CHECK(import_report(import).heading.size() == 4);
  import.steps.summary.phase_is_told = false;
  CHECK_THAT(import_report(import).heading.back(), ContainsSubstring("warning: the attention kernels serve prefill"));
}

TEST_CASE("every rule for names of kernels is listed") {
  const Report report = kernel_rules_report();
  CHECK(report.tables.at(0).rows.size() == config::kernel_rules().size());
  CHECK(report.json["rules"].size() == config::kernel_rules().size());
}

}  // namespace
}  // namespace dculab::present
