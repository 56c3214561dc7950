// Conversations as requests: as long as the model's tokenizer makes them.
#include "study/measure/conversation_lengths.hpp"

#include <string>

#include "engine/tokenizer/tokenizer.hpp"
#include "study/scenario/locate.hpp"
#include "tests/files/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

TEST_CASE("a conversation's request has the tokens of its prompt, and makes those of its answer") {
  const std::string prompt = "How fast does a large model run on this machine?";
  const std::string answer = "As fast as its weights are read from memory, token by token.";
  const files::test::TemporaryFolder folder;
  const auto talk = [](const std::string& asked, const std::string& answered) {
    return R"({"conversations": [{"from": "human", "value": ")" + asked + R"("}, {"from": "gpt", "value": ")" +
           answered + R"("}]})";
  };
  const std::string file = folder.write("talks.json", "[" + talk(prompt, answer) + ", " + talk("Hi", "Ho") + "]");
  const auto tokenizer = find_model("dculab-tiny") / "tokenizer.json";
  const auto counted = engine::Tokenizer::load(tokenizer);
  const std::vector<RecordedRequest> lengths = conversation_lengths(
      {.tokenizer = tokenizer, .file = file, .max_position_embeddings = 512, .requests = 2, .seed = 1});
  REQUIRE(lengths.size() == 1);  // the other is too short to be sampled
  CHECK(lengths[0].prompt_tokens == static_cast<int>(counted.encode(prompt, engine::SpecialTokens::add).size()));
  CHECK(lengths[0].output_tokens == static_cast<int>(counted.encode(answer, engine::SpecialTokens::omit).size()));
}

}  // namespace
}  // namespace dculab::study
