// `dculab list`: what there is to choose among.
#include <algorithm>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

// The entry of that name.
Json entry(const Json& list, const std::string& key, const std::string& name) {
  const auto found = std::ranges::find_if(list, [&](const Json& each) { return each.at(key) == name; });
  REQUIRE(found != list.end());
  return *found;
}

TEST_CASE("list has a line for everything that is shipped, with what somebody chooses by", "[main]") {
  const Json all = run_for_json({"list"});
  CHECK(all.at("schema") == "dculab/list/1");
  const Json llama = entry(all.at("models"), "model", "llama-3-8b");
  CHECK(llama.at("parameters").get<double>() == Approx(8.03e9).epsilon(0.001));
  CHECK(llama.at("attention") == "GQA");
  CHECK(llama.at("num_key_value_heads") == 8);
  const Json mixtral = entry(all.at("models"), "model", "mixtral-8x7b");
  CHECK(mixtral.at("parameters").get<double>() == Approx(46.7e9).epsilon(0.001));
  CHECK(mixtral.at("active_parameters").get<double>() == Approx(12.9e9).epsilon(0.005));
  CHECK(entry(all.at("models"), "model", "deepseek-v2-lite").at("attention") == "MLA");
  const Json card = entry(all.at("machines"), "machine", "k100-ai");
  CHECK(card.at("memory_bytes") == 65520.0 * 1024 * 1024);
  CHECK(card.at("bytes_per_second") == 896e9);
  CHECK(card.at("flop_per_second") == 192e12);
  CHECK(entry(all.at("stacks"), "stack", "vllm-dtk").at("program") == "vLLM");
  CHECK(entry(all.at("scenarios"), "scenario", "serving/llama3_on_z100").contains("question"));
  CHECK_FALSE(all.contains("warnings"));
}

TEST_CASE("list of one kind has that kind alone, as table and as CSV") {
  const Json machines = run_for_json({"list", "machines"});
  CHECK(machines.contains("machines"));
  CHECK_FALSE(machines.contains("models"));
  const std::string table = run_dculab({"list", "models"}).out;
  CHECK_THAT(table, ContainsSubstring("GQA 32/8"));
  CHECK_THAT(table, ContainsSubstring(" active"));
  CHECK(run_dculab({"list", "stacks", "--format", "csv"}).out.starts_with("stack,program,description\n"));
  check_refused({"list", "machins"}, {"machines"});
}

TEST_CASE("a file that cannot be read is left out of the list, and said") {
  const Folder folder;
  std::filesystem::create_directory(folder.path("hwmodels"));
  folder.write("hwmodels/broken.yaml", "schema: dculab/machine/1\n");
  const Finished done =
      run_in_shell("DCULAB_DATA='" + folder.path("") + "' \"$@\"", {"list", "machines", "--format", "json"});
  REQUIRE(done.exit_code == 0);
  const Json list = Json::parse(done.out);
  CHECK_THAT(list.at("warnings").at(0).get<std::string>(), ContainsSubstring("broken.yaml:"));
  CHECK(entry(list.at("machines"), "machine", "z100").contains("memory_bytes"));
}

}  // namespace
}  // namespace dculab::cli::test
