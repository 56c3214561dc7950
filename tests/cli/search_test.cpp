// `dculab study` as a search: the best under constraints, the front and the flip points, against all points by hand.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "config/journal_file.hpp"
#include "config/study_journal.hpp"
#include "tests/cli/program.hpp"
#include "tests/cli/search_scenarios.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

struct Row {
  std::uint64_t point = 0;
  std::string outcome;
  double batch = 0, step = 0, rate = 0, fits = 0;
};

std::vector<Row> search_rows(const std::string& csv) {
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  CHECK(line ==
        "point,workload.batch,kv_cache.block_size,weights,outcome,step_time,tokens_per_second,kv_bytes,"
        "max_sequences,tokens_per_second_per_gpu,joules_per_output_token,usd_per_million_tokens,bound");
  std::vector<Row> rows;
  while (std::getline(lines, line)) {
    std::vector<std::string> fields;
    std::istringstream stream(line);
    for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
    rows.push_back({std::stoull(fields[0]), fields[4], std::stod(fields[1]), std::stod(fields[5]), std::stod(fields[6]),
                    std::stod(fields[8])});
  }
  return rows;
}

TEST_CASE("the best point and the front are those of all points, compared one by one", "[main]") {
  const Folder folder;
  const std::string scenario = folder.write("s.yaml", kSearch), points = folder.path("points.csv");
  const Json study = run_for_json({"study", scenario, "--points", points});
  const std::vector<Row> rows = search_rows(read(points));
  REQUIRE(rows.size() == 7 * 3 * 2);
  CHECK(study.at("points").at("all") == rows.size());
  std::vector<Row> met;
  for (const Row& row : rows) {
    const bool holds = row.step <= 0.040 && row.batch <= row.fits;
    CHECK(row.outcome == (holds ? "met" : "excluded"));
    if (holds) met.push_back(row);
  }
  REQUIRE_FALSE(met.empty());
  CHECK(study.at("points").at("met") == met.size());
  CHECK(study.at("points").at("excluded") == rows.size() - met.size());
  CHECK(met.size() < rows.size());
  const auto best = std::ranges::max_element(met, {}, &Row::rate);
  CHECK(study.at("best")[0].at("point") == best->point);
  CHECK(study.at("best")[0].at("tokens_per_second").get<double>() == Approx(best->rate));
  std::vector<std::uint64_t> front, reported;
  for (const Row& row : met)
    if (std::ranges::none_of(met, [&row](const Row& other) {
          return other.step <= row.step && other.rate >= row.rate && (other.step < row.step || other.rate > row.rate);
        }))
      front.push_back(row.point);
  for (const Json& point : study.at("pareto")) reported.push_back(point.at("point"));
  std::ranges::sort(reported);
  CHECK(reported == front);
}

TEST_CASE("a constraint on exactly a point's figure holds, and one next to it does not") {
  const Folder folder;
  const std::string workload = "workload: {phase: decode, batch: 136, context_tokens: 8190}\n";
  const std::string points = folder.path("points.csv");
  const auto met = [&](const std::string& condition) {
    const std::string file = folder.write("s.yaml", kHead + workload + "constraints: [" + condition + "]\n");
    const Json counts = run_for_json({"study", file, "--points", points}).at("points");
    CHECK(counts.at("refused") == 0);
    return counts.at("met") == 1;
  };
  // 136 sequences of 512 blocks of 16 tokens, 32 layers of 8 heads of 128, K and V in F16: 136 GiB, more than 9 digits.
  CHECK(met("kv_bytes >= 136 GiB"));
  CHECK(met("kv_bytes <= 136 GiB"));
  CHECK(met("kv_bytes == 146028888064 B"));
  CHECK_FALSE(met("kv_bytes >= 146028888065 B"));
  CHECK_THAT(read(points), ContainsSubstring(",146028888064,"));
}

TEST_CASE("a point of a search is what predict says of it") {
  const Folder folder;
  const std::string scenario = folder.write(
      "s.yaml", kHead +
                    "workload: {phase: decode, batch: 8, context_tokens: 1000}\nsweep:\n"
                    "  machine.memory.DRAM.bandwidth: [0.5 TB/s, 2 TB/s]\n  machine: [z100, a100-80gb-sxm]\n"
                    "  model: [llama-2-7b, llama-3-8b]\n  model.num_key_value_heads: [4, 8]\n"
                    "  kv_cache.dtype: [f16, fp8_e4m3]\n");
  const Json study = run_for_json({"study", scenario});
  CHECK(study.at("points").at("all") == 32);
  for (const Json& point : study.at("best")) {
    const Json& choices = point.at("choices");
    const auto choice = [&choices](const char* key) { return choices.at(key).get<std::string>(); };
    const Json step = run_for_json({"predict", "--model", choice("model"), "--machine", choice("machine"), "--batch",
                                    "8", "--context", "1000", "--kv-heads", choice("model.num_key_value_heads"),
                                    "--kv-cache-dtype", choice("kv_cache.dtype"), "--set",
                                    "machine.memory.DRAM.bandwidth=" + choice("machine.memory.DRAM.bandwidth")});
    CHECK(point.at("step_time").get<double>() == Approx(step.at("step_seconds").get<double>()).epsilon(1e-9));
    CHECK(point.at("max_sequences") == step.at("max_sequences"));
    CHECK(point.contains("joules_per_output_token") == step.contains("joules_per_token"));
    if (step.contains("joules_per_token"))
      CHECK(point.at("joules_per_output_token").get<double>() ==
            Approx(step.at("joules_per_token").get<double>()).epsilon(1e-9));
    CHECK(point.at("machine") == step.at("machine"));
    CHECK(point.at("basis") == step.at("basis"));
    for (const int end : {0, 1})
      CHECK(point.at("interval_seconds")[end].get<double>() == Approx(step.at("interval_seconds")[end].get<double>()));
    if (point == study.at("best")[0]) CHECK(point.at("ops") == step.at("ops"));
  }
  // Also of the machine that only its best point is told of.
  for (const char* facts : {"leans_on", "machine_facts"}) {
    CHECK(study.at(facts).contains("z100"));
    CHECK(study.at(facts).contains("a100-80gb-sxm"));
  }
  for (const Json& each : study.at("best_of_values")) CHECK(each.at("best").contains("interval_seconds"));
}

TEST_CASE("with each group and block size a search tells the best point") {
  const Folder folder;
  const std::string objective = "objective: {maximize: tokens_per_second, subject_to: {step_time: \"<= 40 ms\"}}\n";
  const std::string scenario =
      folder.write("s.yaml", kHead + "workload: {phase: decode, batch: 16, context_tokens: 2000}\nsweep:\n" +
                                 "  model.num_key_value_heads: [2, 8, 32]\n  kv_cache.block_size: [1, 16]\n"
                                 "  workload.batch: [4, 16, 64]\n" +
                                 objective);
  const Json study = run_for_json({"study", scenario});
  const Json& pairs = study.at("best_of_pairs");
  CHECK(pairs.size() == 6);
  int compared = 0;
  for (const Json& each : study.at("best_of_values")) {
    const std::string key = each.at("key");
    if (key == "workload.batch") continue;
    double most = 0;
    for (const Json& pair : pairs)
      if (pair.at("choices").at(key) == each.at("value"))
        most = std::max(most, pair.at("tokens_per_second").get<double>());
    CHECK(each.at("best").at("tokens_per_second").get<double>() == most);
    ++compared;
  }
  CHECK(compared == 5);
  CHECK_FALSE(run_for_json({"study", scenario, "--set", "kv_cache.block_size=16"}).contains("best_of_pairs"));
}

TEST_CASE("a journal is gone on with only by the study it belongs to", "[main]") {
  const Folder folder;
  const std::string scenario = folder.write("s.yaml", kSearch), journal = folder.path("journal");
  const Arguments run{"study", scenario, "--journal", journal};
  const Finished first = run_dculab(run);
  REQUIRE(first.exit_code == 0);
  check_refused(run, {"add --resume"});
  Arguments again = run;
  again.emplace_back("--resume");
  CHECK(run_dculab(again).out == first.out);
  CHECK(run_dculab({"merge", journal}).out == first.out);
  if (kHasPages) {
    const std::string page = folder.path("page.html");
    CHECK(run_dculab({"merge", journal, "--report", page}).out == first.out);
    CHECK_THAT(read(page), ContainsSubstring("machine_facts"));
  }
  again.insert(again.end(), {"--set", "workload.context_tokens=1999"});
  check_refused(again, {"of another scenario, machine, stack, model or build"});
}

// With `payload` in the place of the first chunk's, and right checksums.
TEST_CASE("a journal is not gone on with when the stack's file says something else") {
  const Folder folder;
  const std::string stack =
      "schema: dculab/stack/1\nname: mine\nprogram: mine\ndescription: of a test\nkernels: {matmul: [rocblas]}\n";
  const std::string file = folder.write("mine.yaml", stack), journal = folder.path("journal");
  Arguments run{"study", folder.write("s.yaml", kSearch), "--stack", file, "--journal", journal};
  REQUIRE(run_dculab(run).exit_code == 0);
  run.emplace_back("--resume");
  CHECK(run_dculab(run).exit_code == 0);
  static_cast<void>(folder.write("mine.yaml", stack + "kernels_per_op: {value: 2, kind: assumed, source: a guess}\n"));
  check_refused(run, {"of another scenario, machine, stack, model or build"});
}

void replace_first_chunk(const std::string& journal, const std::string& payload) {
  std::uint64_t place = 0;
  {
    const config::StudyJournal there(journal);
    REQUIRE(there.num_chunks() == 1);
    place = std::filesystem::file_size(journal) - config::record_bytes(0, there.read(0)).size();
  }
  std::filesystem::resize_file(journal, place);
  std::ofstream(journal, std::ios::binary | std::ios::app) << config::record_bytes(place, payload);
}

TEST_CASE("a chunk that pricing cannot have said is refused or salvaged, though its checksum is right") {
  const Folder folder;
  const std::string scenario = folder.write("s.yaml", kSearch), journal = folder.path("journal");
  const Arguments run{"study", scenario, "--journal", journal};
  const auto run_with = [&run](const Arguments& more) {
    Arguments all = run;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const Finished whole = run_dculab(run);
  REQUIRE(whole.exit_code == 0);
  const std::string bytes = read(journal);
  const std::string payload = config::StudyJournal(journal).read(0);
  for (const std::string& other :
       {payload.substr(0, payload.size() - 1), std::string(), std::string(payload.size(), '\xff'), payload + payload}) {
    replace_first_chunk(journal, other);
    check_refused(run_with({"--resume"}), {"is damaged at byte", "behind 0 whole chunks; study --salvage"});
    check_refused({"merge", journal}, {"is damaged in chunk 1 of 1", "study --salvage"});
    const Finished salvaged = run_dculab(run_with({"--salvage"}));
    CHECK(salvaged.out == whole.out);
    CHECK_THAT(salvaged.err, ContainsSubstring("0 of 1 chunks are whole and kept"));
    CHECK(read(journal) == bytes);
  }
  std::filesystem::remove(journal);
  REQUIRE(run_dculab(run_with({"--shard", "2/2"})).exit_code == 0);
  replace_first_chunk(journal, "no chunk");
  check_refused(run_with({"--shard", "2/2", "--resume"}), {"is damaged at byte"});
  CHECK(run_dculab(run_with({"--shard", "2/2", "--salvage"})).exit_code == 0);
  CHECK(run_dculab(run_with({"--shard", "2/2", "--resume"})).exit_code == 0);
}

TEST_CASE("a damaged journal is salvaged to the answer of a whole one") {
  const Folder folder;
  const std::string scenario =
      folder.write("s.yaml", kHead +
                                 "workload: {phase: decode, batch: 16, context_tokens: 2000}\n"
                                 "sweep: {workload.context_tokens: {from: 100, to: 4096, samples: 4000}}\n"
                                 "objective: {minimize: step_time}\n");
  const std::string journal = folder.path("journal");
  const Finished whole = run_dculab({"study", scenario, "--journal", journal});
  REQUIRE(whole.exit_code == 0);
  const std::string bytes = read(journal);
  std::string damaged = bytes;
  damaged[bytes.size() / 2] = static_cast<char>(damaged[bytes.size() / 2] ^ 1);
  std::ofstream(journal, std::ios::binary) << damaged;
  check_refused({"study", scenario, "--journal", journal, "--resume"}, {"is damaged at byte", "study --salvage"});
  const Finished salvaged = run_dculab({"study", scenario, "--journal", journal, "--salvage"});
  CHECK(salvaged.out == whole.out);
  CHECK_THAT(salvaged.err, ContainsSubstring("of 4 chunks are whole and kept"));
  CHECK(read(journal) == bytes);
}

TEST_CASE("the flip of a recommendation is where studies of the changed machine flip") {
  const Folder folder;
  const std::string scenario =
      folder.write("s.yaml", kHead +
                                 "workload: {phase: decode, batch: 16, context_tokens: 2000}\n"
                                 "sweep: {kv_cache.block_size: [1, 16, 64], weights: [f16, gptq-int4]}\n"
                                 "objective: {minimize: step_time}\n");
  const Json study = run_for_json({"study", scenario, "--sensitivity", "--within", "8"});
  // By how much another point is better than what was the best.
  const auto gain_at = [&](const std::string& key, double factor) {
    const Json changed =
        run_for_json({"study", scenario, "--set",
                      (key.starts_with("stack.") ? "" : "machine.") + key + "=" + std::to_string(factor) + " x"});
    const Json& best = changed.at("best");
    const auto before = std::ranges::find_if(
        best, [&](const Json& each) { return each.at("choices") == study.at("best")[0].at("choices"); });
    REQUIRE(before != best.end());
    return before->at("step_time").get<double>() / best[0].at("step_time").get<double>() - 1;
  };
  constexpr double kTie = 0.001;
  int flips = 0;
  for (const Json& figure : study.at("sensitivity"))
    for (const char* way : {"down", "up"}) {
      const Json& flip = figure.at(way);
      if (flip.is_null() || flips > 5) continue;
      const std::string key = figure.at("key");
      const bool is_count = key == "compute_units" || key.starts_with("waves.") || key.ends_with(".channels");
      if (is_count || key.ends_with(".line")) continue;  // these move in steps
      ++flips;
      INFO(key << " " << flip);
      const double factor = flip.at("factor"), nearer = std::pow(factor, 0.98);
      CHECK(gain_at(key, nearer) < kTie);
      CHECK(gain_at(key, std::pow(factor, 1.001)) > kTie);
    }
  CHECK(flips > 0);
}

}  // namespace
}  // namespace dculab::cli::test
