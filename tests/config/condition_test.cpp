#include "config/condition.hpp"

#include <map>

#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

const std::map<std::string, std::string> kPoint{{"workload.batch", "8"},
                                                {"workload.context_tokens", "1024"},
                                                {"weights", "gptq-int4"},
                                                {"step_time", "0.02"},
                                                {"machine.memory.DRAM.bandwidth", "0.5 TB/s"}};

Condition parse(const std::string& text) {
  return Condition::parse(text, [](const std::string& name) { return kPoint.contains(name); });
}

bool holds(const std::string& text) {
  return parse(text).holds([](const std::string& name) { return kPoint.at(name); });
}

TEST_CASE("conditions compare sums of products of keys, metrics and figures") {
  CHECK(holds("workload.batch * workload.context_tokens <= 8192"));
  CHECK_FALSE(holds("workload.batch * workload.context_tokens < 8192"));
  CHECK(holds("step_time <= 50 ms"));
  CHECK(holds("20ms>=step_time"));
  CHECK(holds("workload.batch + 2 * 3 == 14"));
  CHECK(holds("(workload.batch + 2) * 3 == 30"));
  CHECK(holds("workload.batch - 2 - 1 == 5"));
  CHECK(holds("workload.context_tokens / workload.batch / 2 == 64"));
  CHECK(holds("machine.memory.DRAM.bandwidth == 500 GB/s"));
  CHECK(holds("workload.batch != 9"));
}

TEST_CASE("words are equal or not") {
  CHECK(holds("weights == gptq-int4"));
  CHECK(holds("weights != f16"));
  CHECK_FALSE(holds("f16 == weights"));
}

TEST_CASE("what cannot be evaluated is refused") {
  for (const auto& [text, why] :
       std::map<std::string, std::string>{{"", "lacks a number or a name"},
                                          {"workload.batch", "has no <=, >="},
                                          {"workload.batch <=", "lacks a number or a name"},
                                          {"workload.batc <= 4", "names 'workload.batc', which is neither"},
                                          {"workload.batch <= 4 5", "has '5' left over"},
                                          {"(workload.batch <= 4", "bracket that is not closed"},
                                          {"f16 <= weights", "names 'f16'"},
                                          {"weights == f16 * 2", "names 'f16'"},
                                          {"workload.batch + step_time == f16", "names 'f16'"},
                                          {"f16 != workload.batch * 2", "names 'f16'"},
                                          {std::string(100, '(') + "1", "too many brackets"}})
    CHECK_THROWS_WITH(parse(text), ContainsSubstring(why));
  CHECK_THROWS_WITH(holds("weights <= 3"), ContainsSubstring("is 'gptq-int4', which is not a number"));
}

}  // namespace
}  // namespace dculab::config
