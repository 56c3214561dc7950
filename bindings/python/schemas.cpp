// Prints the JSON Schema of every answer that the module gives, by command: what the classes of answers are made from.
#include <array>
#include <iostream>
#include <string_view>

#include "present/schema/answer_schemas.hpp"

int main() {
  constexpr std::array<std::string_view, 9> kCommands{"predict", "recommend",        "simulate",
                                                      "study",   "validate",         "calibrate",
                                                      "show",    "tables-intensity", "tables-footprint"};
  dculab::present::Json schemas = dculab::present::Json::object();
  for (const std::string_view command : kCommands)
    schemas[std::string(command)] = dculab::present::find_answer_schema(command).make();
  std::cout << schemas.dump(2) << '\n';
  return std::cout.good() ? 0 : 1;
}
