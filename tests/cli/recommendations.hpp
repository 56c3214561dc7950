// What `dculab recommend` answers, as its JSON has it.
#pragma once

#include <algorithm>
#include <string>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {

inline Arguments recommend(const std::string& machine, const Arguments& more) {
  Arguments arguments{"recommend", "--model", "llama-3-8b", "--machine", machine};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

inline Json recommendation(const std::string& machine, const Arguments& more = {}) {
  const Json report = run_for_json(recommend(machine, more));
  CHECK(report.at("schema") == "dculab/recommend/1");
  return report.at("recommendations").at(0);
}

inline const Json& decision(const Json& recommendation, const std::string& key) {
  const Json& all = recommendation.at("decisions");
  return *std::find_if(all.begin(), all.end(), [&key](const Json& each) { return each.at("key") == key; });
}

}  // namespace dculab::cli::test
