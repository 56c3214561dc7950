// `dculab study` as a search over served requests, held against `dculab simulate` of the same points.
#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

const std::string kServedSearch = R"(schema: dculab/scenario/1
question: Which limits serve best?
model: llama-3-8b
weights: f16
machine: k100-ai
workload:
  requests: 60
  prompt_tokens: {distribution: lognormal, median: 300, sigma: 0.6, min: 16, max: 1500}
  output_tokens: {distribution: lognormal, median: 60, sigma: 0.5, min: 4, max: 200}
  arrival: poisson
  requests_per_second: 12
slo: {ttft: 1 s, tpot: 60 ms}
sweep:
  engine.max_num_seqs: [2, 8, 32]
  engine.max_num_batched_tokens: [128, 1024]
)";
const std::string kObjective = "objective: {maximize: goodput, subject_to: {tpot_p99: \"<= 90 ms\"}}\n";
const std::string kFront = "pareto: {minimize: [ttft_p99, tpot_p99], maximize: [output_tokens_per_second]}\n";

// A points file's rows by column name.
std::vector<std::map<std::string, std::string>> served_rows(const std::string& csv) {
  std::istringstream lines(csv);
  const auto fields = [&lines](std::vector<std::string>& row) {
    std::string line;
    if (!std::getline(lines, line)) return false;
    row.clear();
    std::istringstream stream(line);
    for (std::string field; std::getline(stream, field, ',');) row.push_back(field);
    return true;
  };
  std::vector<std::string> head, row;
  REQUIRE(fields(head));
  std::vector<std::map<std::string, std::string>> rows;
  while (fields(row)) {
    auto& named = rows.emplace_back();
    for (std::size_t index = 0; index < row.size(); ++index) named[head[index]] = row[index];
  }
  return rows;
}

TEST_CASE("a search over requests has the figures, the best point and the front of simulate") {
  const Folder folder;
  const std::string points = folder.path("points.csv");
  const Json study =
      run_for_json({"study", folder.write("search.yaml", kServedSearch + kObjective + kFront), "--points", points});
  const Json simulated = run_for_json({"simulate", folder.write("simulate.yaml", kServedSearch + kObjective + kFront)});
  const auto rows = served_rows(read(points));
  const Json& simulations = simulated.at("simulations");
  REQUIRE(rows.size() == simulations.size());
  for (std::size_t index = 0; index < rows.size(); ++index)
    for (const char* metric : {"total_time", "goodput", "output_tokens_per_second", "ttft_p99", "tpot_p50", "itl_mean"})
      CHECK(std::stod(rows[index].at(metric)) == simulations[index].at(metric).get<double>());
  CHECK(rows.front().at("slowdown_p50").empty());  // the latency alone was not asked for
  CHECK(study.at("slo").at("ttft") == 1);
  CHECK(study.at("slo") == simulations[0].at("slo"));
  REQUIRE(study.at("served_points").size() == rows.size());
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const Json& point = study.at("served_points")[index];
    CHECK(point.at("point") == index);
    CHECK(point.at("ttft_p90") == simulations[index].at("ttft_p90"));
    CHECK(point.at("meets_constraints") == (rows[index].at("outcome") == "met"));
  }
  CHECK(study.at("best")[0].at("point") == simulated.at("best")[0]);
  CHECK(study.at("best")[0].at("goodput") == simulations[simulated.at("best")[0].get<std::size_t>()].at("goodput"));

  for (const char* reported : {"best", "pareto"})
    for (const Json& point : study.at(reported))
      for (const char* trust : {"basis", "step_time_interval"})
        CHECK(point.at(trust) == simulations[point.at("point").get<std::size_t>()].at(trust));

  // Fronts are of the points that meet the objective's constraints.
  const auto front_of = [](const Json& search) {
    std::vector<std::uint64_t> front;
    for (const Json& point : search.at("pareto")) front.push_back(point.at("point"));
    return Json(front);
  };
  CHECK(front_of(study) == simulated.at("pareto")[0]);
  const std::string unlimited = folder.write("front.yaml", kServedSearch + kFront);
  const Json all = run_for_json({"study", unlimited});
  CHECK(front_of(all) == run_for_json({"simulate", unlimited}).at("pareto")[0]);
  double quickest = simulations[0].at("total_time");
  for (const Json& point : all.at("pareto")) quickest = std::min(quickest, point.at("ttft_p99").get<double>());
  const std::string limited = folder.write(
      "limited.yaml", kServedSearch + kFront + "objective: {maximize: goodput, subject_to: {ttft_p99: \"<= " +
                          std::to_string(1.01 * quickest) + " s\"}}\n");
  const Json front = front_of(run_for_json({"study", limited}));
  CHECK(front == run_for_json({"simulate", limited}).at("pareto")[0]);
  CHECK(front.size() < all.at("pareto").size());
  CHECK(all.at("objective").at("metric") == "output_tokens_per_second");
  CHECK(all.at("aims").size() == 3);
}

TEST_CASE("a search over requests is the same on any number of threads, resumed and in shards") {
  const Folder folder;
  const std::string scenario = folder.write("s.yaml", kServedSearch + kObjective + kFront);
  const Finished whole = run_dculab({"study", scenario, "--threads", "1"});
  REQUIRE(whole.exit_code == 0);
  CHECK(run_dculab({"study", scenario, "--threads", "3"}).out == whole.out);
  Arguments merge{"merge"};
  for (const std::string shard : {"1/2", "2/2"}) {
    merge.push_back(folder.path("journal" + shard.substr(0, 1)));
    CHECK(run_dculab({"study", scenario, "--shard", shard, "--journal", merge.back()}).exit_code == 0);
  }
  CHECK(run_dculab(merge).out == whole.out);

  // Killed after any byte: the journal of a shorter time.
  const std::string journal = folder.path("journal");
  REQUIRE(run_dculab({"study", scenario, "--journal", journal}).exit_code == 0);
  const std::string written = read(journal);
  for (const double share : {0.4, 0.7, 0.95}) {
    const auto size = static_cast<std::size_t>(share * static_cast<double>(written.size()));
    const std::string cut = folder.write("cut", written.substr(0, size));
    CHECK(run_dculab({"study", scenario, "--journal", cut, "--resume"}).out == whole.out);
    CHECK(read(cut) == written);
  }
}

TEST_CASE("an axis of a section's key holds beside an axis of the section, on any number of threads") {
  const Folder folder;
  const std::string key = "  deployment.routing: [round_robin, random]\n";
  const std::string section = "  deployment: [{data_parallel_size: 2}, {data_parallel_size: 3}]\n";
  const std::string head = kServedSearch.substr(0, kServedSearch.find("  engine.max_num_seqs"));
  for (const std::string& axes : {key + section, section + key}) {
    const std::string scenario = folder.write("s.yaml", head + axes + "objective: {minimize: latency_mean}\n");
    std::vector<std::string> files;
    for (const std::string threads : {"1", "3"}) {
      const std::string points = folder.path("points" + threads + ".csv");
      REQUIRE(run_dculab({"study", scenario, "--points", points, "--threads", threads}).exit_code == 0);
      files.push_back(read(points));
    }
    CHECK(files[0] == files[1]);
    const auto rows = served_rows(files[0]);
    const Json simulated = run_for_json({"simulate", scenario}).at("simulations");
    REQUIRE(rows.size() == 4);
    for (std::size_t index = 0; index < rows.size(); ++index) {
      const Json& choices = simulated[index].at("choices");
      const Json alone =
          run_for_json({"simulate", scenario, "--set", "deployment=" + choices.at("deployment").get<std::string>(),
                        "deployment.routing=" + choices.at("deployment.routing").get<std::string>()});
      for (const Json& each : {simulated[index], alone.at("simulations")[0]})
        CHECK(std::stod(rows[index].at("latency_mean")) == each.at("latency_mean").get<double>());
    }
    for (const auto& [one, other] : {std::pair{0, 3}, {1, 2}})  // otherwise nothing is shown
      CHECK(rows[one].at("latency_mean") != rows[other].at("latency_mean"));
    const std::size_t other_routing = axes.starts_with(key) ? 2 : 1;
    CHECK(rows[0].at("latency_mean") != rows[other_routing].at("latency_mean"));
  }
}

TEST_CASE("conditions on metrics and keys exclude points, and servers that cannot be are counted") {
  const Folder folder;
  const std::string points = folder.path("points.csv");
  const auto file = [&](const std::string& more) { return folder.write("s.yaml", kServedSearch + kObjective + more); };
  const Json study =
      run_for_json({"study", file("constraints: [engine.max_num_seqs <= 8, ttft_p50 <= 5 s]\n"), "--points", points});
  std::uint64_t met = 0;
  for (const auto& row : served_rows(read(points))) {
    const bool holds = row.at("engine.max_num_seqs") != "32" && std::stod(row.at("ttft_p50")) <= 5 &&
                       std::stod(row.at("tpot_p99")) <= 0.09;
    CHECK(row.at("outcome") == (holds ? "met" : "excluded"));
    met += holds ? 1 : 0;
  }
  CHECK(study.at("points").at("met") == met);
  CHECK(met > 0);
  CHECK(met < 6);
  const Json refused = run_for_json({"study", file(""), "--set", "sweep.model=[llama-3-8b, llama-3-70b]"});
  CHECK(refused.at("points").at("refused") == 6);  // 70 billion weights in 64 GB
}

const std::string kShort = kServedSearch.substr(0, kServedSearch.find("workload:")) +
                           "workload: {requests: 10, prompt_tokens: 300, output_tokens: 20}\n";

TEST_CASE("points of another kind, with another file or without an asked figure cannot be") {
  const Folder folder;
  folder.write("a.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n0,100,20\n");
  const auto study = [&](const std::string& text) { return run_for_json({"study", folder.write("s.yaml", text)}); };
  const std::string other = "{requests: 5, prompt_tokens: 300, output_tokens: 10}";
  const Json mixed =
      study(kShort + "sweep: {workload: [" + other + ", {phase: decode, batch: 4, context_tokens: 99}, " +
            "{requests: 1, file: a.csv}]}\nobjective: {minimize: total_time}\n");
  CHECK(mixed.at("points").at("refused") == 2);
  CHECK(mixed.at("best").size() == 1);
  check_refused({"study", folder.write("s.yaml", kShort.substr(0, kShort.find("workload:")) + "sweep: {workload: [" +
                                                     other + "]}\nobjective: {minimize: step_time}\n")},
                {"no point of the sweep can be", "serves requests"});
  const std::string lengths = "sweep: {workload.output_tokens: [1, 20, 40]}\nobjective: {minimize: tpot_p99}\n";
  const Json one_token =
      run_for_json({"study", folder.write("s.yaml", kShort + lengths), "--sensitivity", "--within", "1.2"});
  CHECK(one_token.at("points").at("refused") == 1);
  CHECK(one_token.at("best")[0].at("choices").at("workload.output_tokens") == "40");
  // Changes of the best point's figure, not of the one that has none.
  for (const Json& figure : one_token.at("sensitivity")) CHECK(figure.at("down").is_null());
  const Json padded =
      study(kShort + "sweep: {workload.kv_padding: [none, longest]}\nobjective: {minimize: total_time}\n");
  CHECK(padded.at("points").at("refused") == 1);
}

TEST_CASE("a model that this machine cannot hold is an answer of one with more memory") {
  const Folder folder;
  const std::string models =
      kShort + "sweep: {model: [llama-3-8b, llama-3-70b]}\nobjective: {maximize: latency_mean}\n";
  const Json study = run_for_json({"study", folder.write("s.yaml", models), "--sensitivity", "--within", "4"});
  const auto& figures = study.at("sensitivity");
  const auto memory =
      std::ranges::find_if(figures, [](const Json& each) { return each.at("key") == "memory.DRAM.size"; });
  REQUIRE(memory != figures.end());
  // 70 billion weights of 2 bytes in nine tenths of 64 GiB more than twice over.
  CHECK(memory->at("up").at("factor").get<double>() > 2);
  CHECK(memory->at("up").dump().find("llama-3-70b") != std::string::npos);
}

TEST_CASE("what no search over requests answers is refused") {
  const Folder folder;
  const auto file = [&](const std::string& more) { return folder.write("s.yaml", kServedSearch + more); };
  check_refused({"study", file("")}, {"s.yaml", "objective, pareto or constraints"});
  check_refused({"study", file("objective: {minimize: step_time}\n")}, {"step_time is no metric of served requests"});
  check_refused({"study", file("constraints: [kv_bytes <= 1 GiB]\n")}, {"kv_bytes is no metric of served requests"});
  check_refused({"study", file(kObjective), "--set", "slo={}"}, {"goodput", "slo"});
  check_refused(
      {"study", file("objective: {maximize: ttft_p50, subject_to: {goodput: \">= 1\"}}\n"), "--set", "slo={}"},
      {"objective.subject_to", "goodput", "slo"});
  check_refused({"study", file("constraints: [slowdown_p50 <= 3]\n")}, {"constraints", "slo.slowdown"});
  check_refused({"study", file("constraints: [ttft_p50 <= 3 s]\n"), "--measure"}, {"a search is predicted"});
  check_refused({"study", file(kObjective), "--measure"}, {"a search is predicted"});
  const std::string lengths = folder.write("a.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n0,100,20\n");
  const std::string files = kServedSearch.substr(0, kServedSearch.find("workload:")) +
                            "workload: {requests: 1, file: " + lengths + "}\nsweep: {workload.file: [" + lengths +
                            "]}\n";
  check_refused({"study", folder.write("f.yaml", files + "objective: {minimize: total_time}\n")},
                {"f.yaml", "sweep.workload.file"});
}

TEST_CASE("a flip of served requests is where the changed machine serves another point better by more than a tie") {
  const Folder folder;
  std::string text = kServedSearch.substr(0, kServedSearch.find("sweep:")) +
                     "sweep: {engine.max_num_batched_tokens: [128, 1024]}\n" +
                     "objective: {minimize: latency_mean, subject_to: {tpot_p99: \"<= 50 ms\"}}\n";
  text.replace(text.find("requests: 60"), 12, "requests: 24");
  const std::string scenario = folder.write("s.yaml", text);
  const Json study = run_for_json({"study", scenario, "--sensitivity", "--within", "2"});
  const Json best = study.at("best")[0].at("choices");
  int flips = 0;
  for (const Json& figure : study.at("sensitivity"))
    for (const char* way : {"down", "up"}) {
      const Json& flip = figure.at(way);
      const std::string key = figure.at("key");
      if (flip.is_null() || !(key.starts_with("memory.DRAM") || key.starts_with("peaks."))) continue;
      ++flips;
      INFO(key << " " << flip);
      const Json changed =
          run_for_json({"study", scenario, "--set", "machine." + key + "=" + flip.at("factor").dump() + " x"});
      CHECK(changed.at("best")[0].at("choices") != best);
      if (changed.at("best").size() < 2) continue;  // what was the best breaks the constraint
      CHECK(changed.at("best")[0].at("latency_mean").get<double>() <
            0.99 * changed.at("best")[1].at("latency_mean").get<double>());
    }
  CHECK(flips > 0);
}

}  // namespace
}  // namespace dculab::cli::test
