// What the engine says of the shipped model is what transformers says (scripts/golden/make_evaluation_goldens.py),
// however it is run; and the arithmetic of scores and divergences by hand.
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.hpp"
#include "engine/evaluate/choice_evaluation.hpp"
#include "engine/evaluate/decode_speed.hpp"
#include "engine/evaluate/text_evaluation.hpp"
#include "engine/sampling/token_distribution.hpp"
#include "model/folder/model_files.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

using nlohmann::json;

const std::string kModel = std::string(DCULAB_SOURCE_DIR) + "/scenarios/models/dculab-tiny";

json golden() {
  const std::string path = std::string(DCULAB_SOURCE_DIR) + "/tests/golden/evaluation/dculab-tiny.json";
  return json::parse(read_model_text(path));
}

Generator tiny(Dtype kv_cache_dtype, int num_threads = 2) {
  GeneratorOptions options;
  options.engine.kv_cache_dtype = kv_cache_dtype;
  options.num_threads = num_threads;
  options.weight_memory = WeightMemory::mapped;
  return Generator(kModel, options);
}

std::vector<TokenId> held_out(const Generator& generator, std::size_t num_tokens) {
  std::string text = read_model_text(kModel + "/eval/held-out.txt");
  text.resize(std::min<std::size_t>(text.size(), 12 * num_tokens));
  std::vector<TokenId> ids = generator.tokenizer().encode(text, SpecialTokens::omit);
  REQUIRE(ids.size() > num_tokens);
  ids.resize(num_tokens);
  return ids;
}

// A question in the form that scripts/model/evaluate.py gives it.
ChoiceItem item_of(const std::string& line) {
  const json node = json::parse(line);
  ChoiceItem item;
  item.prompt = node.value("context", "") + "Question: " + node["question"]["stem"].get<std::string>() + "\nAnswer:";
  for (const json& choice : node["question"]["choices"]) {
    if (choice["label"] == node["answerKey"]) item.answer = static_cast<int>(item.choices.size());
    item.choices.push_back(choice["text"]);
  }
  return item;
}

std::vector<ChoiceItem> first_items(const std::string& file, std::size_t count) {
  std::istringstream stream(read_model_text(kModel + "/eval/" + file));
  std::vector<ChoiceItem> items;
  for (std::string line; items.size() < count && std::getline(stream, line);) items.push_back(item_of(line));
  return items;
}

}  // namespace

TEST_CASE("A log probability is the logit less the log of the sum of exponentials", "[evaluate]") {
  const std::vector<float> logits = {std::log(1.0F), std::log(3.0F), std::log(4.0F)};
  CHECK_THAT(log_probability(logits, 1), WithinAbs(std::log(3.0 / 8), 1e-6));
  const std::vector<float> large = {1000.0F, 1000.0F};  // must not overflow
  CHECK_THAT(log_probability(large, 0), WithinAbs(std::log(0.5), 1e-9));
  CHECK(likeliest(logits) == 2);
  CHECK(likeliest(large) == 0);
}

TEST_CASE("The divergence of two rows is Kullback and Leibler's", "[evaluate]") {
  const std::vector<float> p = {std::log(0.5F), std::log(0.5F)};
  const std::vector<float> q = {std::log(0.25F) + 7, std::log(0.75F) + 7};  // not normalized
  std::vector<float> reference(2);
  log_softmax(p, reference);
  CHECK_THAT(kl_divergence(reference, q), WithinAbs(0.5 * std::log(2.0) + 0.5 * std::log(2.0 / 3), 1e-6));
  CHECK_THAT(kl_divergence(reference, p), WithinAbs(0.0, 1e-7));
  Agreement agreement;
  agreement.add(reference, q);  // the first of equal ones against the second
  agreement.add(reference, p);
  CHECK(agreement.top1() == 0.5);
  CHECK_THAT(agreement.mean_kl(), WithinAbs(kl_divergence(reference, q) / 2, 1e-7));
}

TEST_CASE("Windows score as in transformers", "[evaluate][once]") {
  const json expected = golden();
  const int window = expected["window"];
  Generator generator = tiny(Dtype::f32);
  TokenScorer scorer(generator, ScoringMode::chunked);
  const std::vector<TokenId> ids = held_out(generator, expected["windows"].size() * static_cast<std::size_t>(window));
  double total = 0;
  for (std::size_t index = 0; index < expected["windows"].size(); ++index) {
    const auto part =
        std::span(ids).subspan(index * static_cast<std::size_t>(window), static_cast<std::size_t>(window));
    const TextEvaluation found = evaluate_text(scorer, nullptr, part, {.window = window});
    const double log_probability = expected["windows"][index]["log_probability"];
    total += log_probability;
    CHECK(found.loss.num_tokens == window - 1);
    // Sums of 511 values of F32 arithmetic in another order: well within the four digits that are reported.
    CHECK_THAT(-found.loss.sum, WithinRel(log_probability, 1e-5));
  }
  const TextEvaluation all = evaluate_text(scorer, nullptr, ids, {.window = window});
  CHECK_THAT(-all.loss.sum, WithinRel(total, 1e-5));
  CHECK_FALSE(all.agreement.has_value());
  REQUIRE(all.by_position.size() == 4);  // [1, 64), [64, 128), [128, 256), [256, 512)
  CHECK(all.by_position[0].loss.num_tokens == 3 * 63);
  CHECK(all.by_position[3].loss.num_tokens == 3 * 256);
}

TEST_CASE("Choices score as in transformers", "[evaluate][once]") {
  const json expected = golden()["choices"];
  Generator generator = tiny(Dtype::f32);
  TokenScorer scorer(generator, ScoringMode::chunked);
  for (const auto& [name, items] : expected.items()) {
    const std::vector<ChoiceItem> asked = first_items(name + ".jsonl", items.size());
    for (std::size_t index = 0; index < items.size(); ++index) {
      INFO(name << " " << index);
      const Chosen chosen = choose(scorer, asked[index]);
      const auto sums = items[index].get<std::vector<double>>();
      REQUIRE(chosen.log_probabilities.size() == sums.size());
      for (std::size_t choice = 0; choice < sums.size(); ++choice)
        CHECK_THAT(chosen.log_probabilities[choice], WithinAbs(sums[choice], 1e-3));
      CHECK(chosen.by_sum == std::ranges::max_element(sums) - sums.begin());
    }
  }
}

TEST_CASE("A text scores the same to the bit in chunks, in a stream and on one thread", "[evaluate]") {
  Generator generator = tiny(Dtype::f16);
  const std::vector<TokenId> ids = held_out(generator, 300);
  TokenScorer chunked(generator, ScoringMode::chunked);
  const TextEvaluation expected = evaluate_text(chunked, nullptr, ids, {.window = 100});
  CHECK(expected.loss.num_tokens == 3 * 99);
  Generator alone = tiny(Dtype::f16, 1);
  for (const int at_once : {1, 3}) {
    TokenScorer streamed(alone, ScoringMode::streamed);
    const TextEvaluation found = evaluate_text(streamed, nullptr, ids, {.window = 100, .windows_at_once = at_once});
    CHECK(found.loss.num_tokens == expected.loss.num_tokens);
    REQUIRE(found.by_position.size() == expected.by_position.size());
    for (std::size_t index = 0; index < found.by_position.size(); ++index)
      CHECK_THAT(found.by_position[index].loss.sum, WithinRel(expected.by_position[index].loss.sum, 1e-12));
  }
}

TEST_CASE("Choices score the same whether the prompt is computed again or not", "[evaluate]") {
  Generator generator = tiny(Dtype::f16);
  const ChoiceItem item = first_items("choice.jsonl", 1).front();
  TokenScorer reusing(generator, ScoringMode::chunked);
  const Chosen expected = choose(reusing, item);
  for (std::size_t index = 0; index < item.choices.size(); ++index) {
    TokenScorer fresh(generator, ScoringMode::streamed);
    ChoiceItem single = item;
    single.choices = {item.choices[index]};
    CHECK(choose(fresh, single).log_probabilities[0] == expected.log_probabilities[index]);
  }
  CHECK(expected.by_sum == item.answer);
  const std::vector<ChoiceItem> items = first_items("choice.jsonl", 5);
  int right = 0;  // in transformers
  for (std::size_t index = 0; index < items.size(); ++index) {
    const auto sums = golden()["choices"]["choice"][index].get<std::vector<double>>();
    right += std::ranges::max_element(sums) - sums.begin() == items[index].answer ? 1 : 0;
  }
  const ChoiceEvaluation evaluation = evaluate_choices(reusing, items);
  CHECK(evaluation.num_items == 5);
  CHECK(evaluation.right == right);
}

TEST_CASE("A model agrees with itself, and less so with a coarser cache", "[evaluate]") {
  Generator reference = tiny(Dtype::f32);
  TokenScorer against(reference, ScoringMode::chunked);
  const std::vector<TokenId> ids = held_out(reference, 200);
  Generator same = tiny(Dtype::f32);
  TokenScorer streamed(same, ScoringMode::streamed);
  const TextEvaluation equal = evaluate_text(streamed, &against, ids, {.window = 64});
  REQUIRE(equal.agreement.has_value());
  CHECK(equal.agreement->num_tokens == equal.loss.num_tokens);
  CHECK(equal.agreement->top1() == 1.0);
  CHECK_THAT(equal.agreement->mean_kl(), WithinAbs(0.0, 1e-6));
  Generator coarse = tiny(Dtype::bf16);
  TokenScorer chunked(coarse, ScoringMode::chunked);
  const TextEvaluation other = evaluate_text(chunked, &against, ids, {.window = 64});
  CHECK(other.agreement->mean_kl() > 1e-7);
  CHECK(other.agreement->mean_kl() < 1e-2);
}

TEST_CASE("What cannot be scored is refused", "[evaluate]") {
  Generator generator = tiny(Dtype::f16);
  TokenScorer chunked(generator, ScoringMode::chunked);
  const std::vector<TokenId> ids(1100, 5);
  CHECK_THROWS_WITH(evaluate_text(chunked, nullptr, ids, {.window = 1100}),
                    ContainsSubstring("max_position_embeddings"));
  TokenScorer streamed(generator, ScoringMode::streamed);
  CHECK_THROWS_WITH(evaluate_text(streamed, nullptr, ids, {.window = 1100}),
                    ContainsSubstring("max_position_embeddings"));
  CHECK_THROWS_WITH(median_decode_step(generator, {.batch = 1, .context = 1020, .steps = 30}),
                    ContainsSubstring("max_position_embeddings"));
}

TEST_CASE("Decode is timed when all sequences decode", "[evaluate]") {
  Generator generator = tiny(Dtype::f16);
  CHECK(median_decode_step(generator, {.batch = 3, .context = 20, .steps = 4}) > Seconds());
}

}  // namespace dculab::engine
