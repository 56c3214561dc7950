// Every value of what is shown, with where it came from.
#include "present/values/shown_report.hpp"

#include <string>

#include "config/unit_text.hpp"
#include "present/values/measure_text.hpp"
#include "tests/present/document_errors.hpp"
#include "tests/support/catch.hpp"

namespace dculab::present {
namespace {

Json value_of(const Report& report, const std::string& key) {
  for (const Json& each : report.json["values"])
    if (each["key"] == key) return each;
  return nullptr;
}

TEST_CASE("the table and the JSON have the same values") {
  for (const char* what : {"z100", "vllm-triton", "llama-3-8b", "llama3_on_dcu"}) {
    INFO(what);
    const Report report = shown_report(study::find_shown(what, {}));
    CHECK(test::document_errors(report) == std::vector<std::string>{});
    const Table& table = report.tables.at(0);
    REQUIRE(table.rows.size() == report.json["values"].size());
    REQUIRE_FALSE(table.rows.empty());
    for (std::size_t row = 0; row < table.rows.size(); ++row)
      CHECK(table.rows[row][1] == readable(report.json["values"][row]["value"]));
  }
}

TEST_CASE("a value of a scenario cites its line, what was set, or that it is in force") {
  const Report report = shown_report(study::find_shown("llama3_on_dcu", {"kv_cache.block_size=64"}));
  CHECK_THAT(report.heading.at(0), ContainsSubstring("scenario ") && ContainsSubstring("llama3_on_dcu.yaml: "));
  CHECK(value_of(report, "kv_cache.block_size")["source"] == "--set kv_cache.block_size=64");
  CHECK_THAT(value_of(report, "schema")["source"].get<std::string>(), ContainsSubstring("llama3_on_dcu.yaml:"));
  CHECK(value_of(report, "engine.max_num_seqs")["value"].get<std::string>() != "");
  CHECK(value_of(report, "engine.swap_space").is_null());
  CHECK_THAT(value_of(report, "attention.partition_tokens")["source"].get<std::string>(),
             ContainsSubstring("effective on "));
}

TEST_CASE("a machine whose figures were set says what moved with them") {
  const auto set = std::get<study::ShownMachine>(study::find_shown("z100", {"machine.clock=1000 MHz"}));
  const Report report = shown_report(set);
  REQUIRE(set.machine.redesign);
  CHECK(report.heading.size() == 2);
  CHECK(config::parse_quantity<Hertz>(value_of(report, "clock")["value"].get<std::string>()) == Hertz(1e9));
}

}  // namespace
}  // namespace dculab::present
