// Journals of searches over requests from a file, which may lie elsewhere later.
#include <filesystem>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

const std::string kServedHead =
    "schema: dculab/scenario/1\nquestion: Which limits serve best?\nmodel: llama-3-8b\nmachine: k100-ai\n";

TEST_CASE("a search goes on with its journal when its folder has moved") {
  const Folder folder;
  std::filesystem::create_directory(folder.path("before"));
  folder.write("before/lengths.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n0,100,20\n0.1,300,40\n");
  folder.write("before/s.yaml", kServedHead +
                                    "workload: {requests: 2, file: lengths.csv, arrival: replay}\n"
                                    "sweep: {kv_cache.block_size: [16, 64]}\nobjective: {minimize: latency_mean}\n");
  const auto study = [&](const std::string& where) {
    return run_dculab(
        {"study", folder.path(where + "/s.yaml"), "--journal", folder.path(where + "/journal"), "--resume"});
  };
  const Finished before = study("before");
  REQUIRE(before.exit_code == 0);
  std::filesystem::rename(folder.path("before"), folder.path("after"));
  CHECK(study("after").out == before.out);
}

TEST_CASE("requests from a file are searched from a journal that lies elsewhere") {
  const Folder folder;
  folder.write("lengths.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n0,100,20\n0.1,300,40\n0.3,50,10\n");
  const std::string scenario =
      folder.write("s.yaml", kServedHead +
                                 "workload: {requests: 3, file: lengths.csv, arrival: replay}\n"
                                 "sweep: {kv_cache.block_size: [16, 64]}\nobjective: {minimize: latency_mean}\n");
  std::filesystem::create_directory(folder.path("elsewhere"));
  const std::string elsewhere = folder.path("elsewhere/journal");
  const Finished whole = run_dculab({"study", scenario, "--journal", elsewhere});
  REQUIRE(whole.exit_code == 0);
  CHECK(run_dculab({"merge", elsewhere, "--sensitivity"}).exit_code == 0);
  CHECK(run_dculab({"merge", elsewhere}).out == whole.out);
  folder.write("lengths.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n0,100,20\n0.1,300,40\n0.3,50,11\n");
  check_refused({"merge", elsewhere}, {"journal", "another here"});
}

TEST_CASE("shards of a study whose requests lie elsewhere on each host are merged", "[main]") {
  const Folder folder;
  Arguments merge{"merge"};
  for (const std::string host : {"1", "2"}) {
    std::filesystem::create_directory(folder.path(host));
    folder.write(host + "/a.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n0,100,20\n0.1,300,40\n");
    const std::string scenario = folder.write(host + "/s.yaml", kServedHead +
                                                                    "workload: {requests: 2, file: a.csv}\n"
                                                                    "sweep: {kv_cache.block_size: [16, 64]}\n"
                                                                    "objective: {minimize: latency_mean}\n");
    merge.push_back(folder.path(host + "/journal"));
    CHECK(run_dculab({"study", scenario, "--shard", host + "/2", "--journal", merge.back()}).exit_code == 0);
  }
  CHECK(run_for_json(merge).at("points").at("met") == 2);
}

}  // namespace
}  // namespace dculab::cli::test
