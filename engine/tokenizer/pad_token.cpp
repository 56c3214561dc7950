#include "engine/tokenizer/pad_token.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "fields/json_fields.hpp"
#include "fields/printable_text.hpp"
#include "model/folder/model_files.hpp"

namespace dculab::engine {
namespace {

namespace fs = std::filesystem;

// "<pad>", or {"content": "<pad>", ...}; empty where there is none.
[[nodiscard]] std::string pad_text(const JsonFields& fields) {
  const auto found = std::ranges::find(fields.members(), "pad_token", &Node::key);
  const bool is_map = found != fields.members().end() && found->kind == NodeKind::map;
  return is_map ? fields.object("pad_token")->text("content", "") : fields.text("pad_token", "");
}

}  // namespace

std::optional<TokenId> read_pad_token(const fs::path& folder, const Tokenizer& tokenizer) {
  const fs::path file = folder / "tokenizer_config.json";
  if (fs::exists(file)) {
    const JsonFields fields(file.string(), read_model_text(file.string()));
    if (const std::string text = pad_text(fields); !text.empty()) {
      const std::optional<TokenId> id = tokenizer.token_id(text);
      if (!id) fields.refuse("pad_token", in_quotes(text) + " is no token of tokenizer.json");
      return id;
    }
  }
  for (const char* name : {"generation_config.json", "config.json"}) {
    const std::string other = (folder / name).string();
    if (!fs::exists(other)) continue;
    const JsonFields fields(other, read_model_text(other));
    const int id = fields.integer("pad_token_id", -1);  // some say -1 for none
    if (id >= 0) return id;
  }
  return std::nullopt;
}

KvSkip with_pad_token(KvSkip asked, const fs::path& folder, const Tokenizer& tokenizer) {
  if (!asked.padding) return asked;
  if (!asked.pad_token_id) asked.pad_token_id = read_pad_token(folder, tokenizer);
  if (!asked.pad_token_id)
    throw InputError(folder.string(), "names no pad token, so padding cannot be told from text; give --pad-token-id");
  const std::vector<TokenId> around = tokenizer.encode("", SpecialTokens::add);
  if (std::ranges::find(around, *asked.pad_token_id) != around.end())
    throw InputError("pad token " + std::to_string(*asked.pad_token_id),
                     "stands around every prompt that the tokenizer makes, so padding cannot be told from it");
  return asked;
}

}  // namespace dculab::engine
