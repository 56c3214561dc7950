// Slips of the kind that people make on a command line.
#include "fields/near_words.hpp"

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/catch.hpp"

namespace dculab {
namespace {

TEST_CASE("a slip of few letters is understood, whatever its case") {
  const std::vector<std::string_view> machines{"h100-pcie", "h100-sxm", "h200", "k100", "k100-ai", "z100"};
  for (const char* const word : {"k100ai", "K100AI", "K100-AI", "k100-a", "k100_ai", "k10-0ai"})
    CHECK(suggestion(word, machines) == "did you mean 'k100-ai'?");
  CHECK(suggestion("hz00", machines) == "did you mean 'h200'?");
  const std::vector<std::string_view> commands{"study", "predict", "probe"};
  CHECK(suggestion("predcit", commands) == "did you mean 'predict'?");
  CHECK(suggestion("stduy", commands) == "did you mean 'study'?");
}

TEST_CASE("a beginning stands for all that begin so") {
  const std::vector<std::string_view> machines{"a100-40gb", "h100-pcie", "h100-sxm", "h200"};
  CHECK(suggestion("h100", machines) == "did you mean 'h100-sxm' or 'h100-pcie'?");
  CHECK(suggestion("H200-141GB-HBM3e", machines) == "did you mean 'h200'?");
  const std::vector<std::string_view> many{"qwen3-1", "qwen3-22", "qwen3-333", "qwen3-4444", "qwen3-55555"};
  CHECK(suggestion("qwen3", many) == "did you mean 'qwen3-1', 'qwen3-22', 'qwen3-333' or 'qwen3-4444'?");
}

TEST_CASE("what is far from every word is no slip") {
  const std::vector<std::string_view> keys{"slo", "model", "sweep"};
  for (const char* const word : {"foo", "x", "", "temperature"}) CHECK(suggestion(word, keys).empty());
  CHECK(suggestion("model", std::vector<std::string_view>{}).empty());
  CHECK(suggestion(std::string(100'000, 'a'), keys).empty());
}

}  // namespace
}  // namespace dculab
