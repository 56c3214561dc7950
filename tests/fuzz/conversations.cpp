// Conversations in ShareGPT's format.
#include "config/conversations_file.hpp"

#include <string>
#include <vector>

#include "tests/fuzz/targets.hpp"

namespace dculab::fuzz {
namespace {

std::string sharegpt_json(const std::vector<config::Exchange>& exchanges) {
  const auto turn = [](const char* from, const std::string& value) {
    return R"({"from":")" + std::string(from) + R"(","value":)" + json_string(value) + "}";
  };
  std::string text;
  for (const config::Exchange& each : exchanges)
    text += (text.empty() ? R"([{"id":)" : R"(,{"id":)") + json_string(each.id) + R"(,"conversations":[)" +
            turn("human", each.prompt) + "," + turn("gpt", each.answer) + "]}";
  return text + "]";
}

}  // namespace

void read_conversations_json(std::string_view input) {
  const auto exchanges = config::read_conversations("fuzz.json", std::string(input));
  require(!exchanges.empty(), "there are exchanges");
  const std::string text = sharegpt_json(exchanges);
  require(sharegpt_json(read_back([&] { return config::read_conversations("again.json", text); })) == text,
          "exchanges are read back as written");
}

}  // namespace dculab::fuzz
