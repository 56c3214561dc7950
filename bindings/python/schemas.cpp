// schemas FILE: writes the JSON Schema of every answer that the module gives, by command: what the classes of answers
// are made from.
#include <array>
#include <string>
#include <string_view>

#include "files/output.hpp"
#include "present/schema/answer_schemas.hpp"

int main(int argc, char* argv[]) {
  if (argc != 2) return 2;
  constexpr std::array<std::string_view, 10> kCommands{
      "predict",  "recommend", "simulate", "diagnose",         "study",
      "validate", "calibrate", "show",     "tables-intensity", "tables-footprint"};
  dculab::present::Json schemas = dculab::present::Json::object();
  for (const std::string_view command : kCommands)
    schemas[std::string(command)] = dculab::present::find_answer_schema(command).make();
  dculab::files::write_file_atomically(argv[1], schemas.dump(2) + "\n");
  return 0;
}
