// The small tokenizers of tests/golden, by kind, and what the tokenizers library made of texts with them.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/tokenizer/stream_decoder.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "fields/utf8.hpp"
#include "model/folder/model_files.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {

inline const std::string kGoldens = std::string(DCULAB_SOURCE_DIR) + "/tests/golden/tokenizer/";
inline const std::string kFamilyGoldens = std::string(DCULAB_SOURCE_DIR) + "/tests/golden/tokenizer_families/";

// "gpt2", "llama3", "qwen2"; in kFamilyGoldens "llama2", "mistral", "bloom", "falcon".
inline Tokenizer fixture(const std::string& kind, const std::string& folder = kGoldens) {
  return Tokenizer::load(folder + kind + ".json");
}

inline nlohmann::json fixture_json(const std::string& kind, const std::string& folder = kGoldens) {
  const std::string path = folder + kind + ".json";
  return nlohmann::json::parse(read_model_text(path));
}

inline std::vector<nlohmann::json> read_lines(const std::string& path) {
  std::ifstream stream(path);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

// As texts.jsonl says it.
struct Answer {
  std::vector<TokenId> ids;
  std::string shown;
  std::string skipped;
};

inline Answer read_answer(const nlohmann::json& node, const std::string& text) {
  if (node.is_array()) return {node.get<std::vector<TokenId>>(), text, text};
  return {node["ids"].get<std::vector<TokenId>>(), node["shown"].get<std::string>(),
          node["skipped"].get<std::string>()};
}

// Also checks that the decoder never hands over a part of a character.
inline std::string decode_in_stream(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  StreamDecoder decoder(tokenizer, SpecialText::show);
  std::string text;
  for (const TokenId id : ids) {
    const std::string part = decoder.push(id);
    if (valid_prefix(part) != part.size()) FAIL("the stream decoder gave a part of a character");
    text += part;
  }
  return text + decoder.finish();
}

// texts.jsonl of `folder`.
inline void check_texts(const std::string& folder, const std::vector<std::string>& kinds) {
  const std::vector<nlohmann::json> lines = read_lines(folder + "texts.jsonl");
  REQUIRE(lines.size() > 2000);
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    INFO(kinds[kind]);
    const Tokenizer tokenizer = fixture(kinds[kind], folder);
    const auto prefix = lines[0][kinds[kind]].get<std::vector<TokenId>>();
    for (std::size_t i = 1; i < lines.size(); ++i) {
      const std::string text = lines[i][0].get<std::string>();
      const Answer answer = read_answer(lines[i][kind + 1], text);
      INFO(lines[i][0]);
      const std::vector<TokenId> ids = tokenizer.encode(text, SpecialTokens::omit);
      if (ids != answer.ids) CHECK(ids == answer.ids);  // the macro alone is slow
      std::vector<TokenId> with_prefix = prefix;
      with_prefix.insert(with_prefix.end(), ids.begin(), ids.end());
      if (tokenizer.encode(text, SpecialTokens::add) != with_prefix) FAIL_CHECK("special tokens differ");
      if (tokenizer.decode(ids, SpecialText::show) != answer.shown) FAIL_CHECK("decoded text differs");
      if (tokenizer.decode(ids, SpecialText::skip) != answer.skipped) FAIL_CHECK("text without special tokens differs");
      if (decode_in_stream(tokenizer, ids) != answer.shown) FAIL_CHECK("text decoded in a stream differs");
    }
  }
}

// ids.jsonl of `folder`.
inline void check_random_ids(const std::string& folder, const std::vector<std::string>& kinds) {
  const nlohmann::json lists = read_lines(folder + "ids.jsonl").at(0);
  for (const std::string& kind : kinds) {
    const Tokenizer tokenizer = fixture(kind, folder);
    REQUIRE(lists[kind].size() == 400);
    for (const nlohmann::json& entry : lists[kind]) {
      const auto ids = entry[0].get<std::vector<TokenId>>();
      INFO(kind << entry);
      CHECK(tokenizer.decode(ids, SpecialText::show) == entry[1].get<std::string>());
      CHECK(decode_in_stream(tokenizer, ids) == entry[1].get<std::string>());
    }
  }
}

// variants.jsonl of `folder`.
inline void check_variants(const std::string& folder) {
  const std::vector<nlohmann::json> variants = read_lines(folder + "variants.jsonl");
  REQUIRE(variants.size() > 35);
  for (const nlohmann::json& variant : variants) {
    nlohmann::json content = fixture_json(variant[0].get<std::string>(), folder);
    content.merge_patch(variant[1]);
    const Tokenizer tokenizer = Tokenizer::parse(content.dump(), "variant");
    INFO(variant[0] << " " << variant[1]);
    for (const nlohmann::json& entry : variant[2]) {
      INFO(entry[0]);
      const std::vector<TokenId> ids = tokenizer.encode(entry[0].get<std::string>(), SpecialTokens::add);
      CHECK(ids == entry[1].get<std::vector<TokenId>>());
      CHECK(tokenizer.decode(ids, SpecialText::skip) == entry[2].get<std::string>());
    }
  }
}

}  // namespace dculab::engine
