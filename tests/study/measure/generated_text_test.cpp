// Text after prompts, and prompts that get none.
#include "study/measure/generated_text.hpp"

#include "core/error.hpp"
#include "tests/files/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

TextQuestion text_question(const std::string& prompt) {
  TextQuestion question;
  question.model = "dculab-tiny";
  question.prompt = prompt;
  question.max_tokens = 4;
  question.temperature = 0;
  question.ignore_eos = true;
  question.generator.num_threads = 2;
  return question;
}

TEST_CASE("a prompt file has a prompt in each line that is not empty") {
  const files::test::TemporaryFolder folder;
  TextQuestion question = text_question("alone");
  CHECK(read_prompts(question) == std::vector<std::string>{"alone"});
  question.prompts_file = folder.write("two.txt", "Once upon a time\n\nTom and Lena\n");
  CHECK(read_prompts(question) == std::vector<std::string>{"Once upon a time", "Tom and Lena"});
  question.prompts_file = folder.write("none.txt", "\n\n");
  CHECK_THROWS_WITH(read_prompts(question), ContainsSubstring("has no prompts (one per line)"));
}

TEST_CASE("each sample has its prompt, and the stream has the text") {
  TextQuestion question = text_question("Once upon a time");
  question.n = 2;
  question.temperature = 0.8;
  std::string streamed;
  const GeneratedText text =
      generate_text(question, read_prompts(question), [&](std::size_t index, std::string_view more) {
        if (index == 0) streamed += more;
      });
  CHECK(text.prompts == std::vector<std::string>{"Once upon a time", "Once upon a time"});
  REQUIRE(text.generation.completions.size() == 2);
  CHECK(text.generation.completions[0].token_ids.size() == 4);
  CHECK(streamed == text.generation.completions[0].text);
  CHECK_NOTHROW(refuse_unserved_prompts(question, text.generation));
}

TEST_CASE("samples that cannot share the blocks of their prompt are refused before a model is loaded") {
  TextQuestion question = text_question("Once upon a time");
  question.model = "no-such-model";
  question.n = 2;
  question.generator.engine.kv_cache_dtype = Dtype::kivi4;
  CHECK_THROWS_WITH(generate_text(question, {"a"}, {}), ContainsSubstring("--n"));
}

TEST_CASE("prompts that were not served are counted, and the first is named") {
  engine::Generation generation;
  generation.completions.resize(6);
  TextQuestion question = text_question("");
  question.n = 2;
  question.prompts_file = "prompts.txt";
  CHECK_NOTHROW(refuse_unserved_prompts(question, generation));
  generation.completions[2].refusal = "too long";
  generation.completions[4].refusal = "no text";
  CHECK_THROWS_WITH(refuse_unserved_prompts(question, generation),
                    ContainsSubstring("prompts.txt: 2 of 3 prompts cannot be served; prompt 2: too long"));
  question.prompts_file.clear();
  CHECK_THROWS_WITH(refuse_unserved_prompts(question, generation), ContainsSubstring("--prompt: too long"));
}

}  // namespace
}  // namespace dculab::study
