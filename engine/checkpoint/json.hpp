// JSON text to fields of known type, with one message per mistake: file, line, what is wrong.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dculab::engine {

// Parses strictly: a duplicate key is an error. Throws InputError with `file` and the line.
[[nodiscard]] nlohmann::json parse_json(std::string_view text, const std::string& file);

// A whole file as text. Throws InputError when it cannot be read.
[[nodiscard]] std::string read_text(const std::string& path);

// Fields of a JSON object by name. A field that is null counts as absent, as in Hugging Face configurations.
class JsonFields {
 public:
  // Throws InputError when `text` is not a JSON object.
  JsonFields(std::string file, std::string text);

  [[nodiscard]] bool has(std::string_view key) const;
  [[nodiscard]] bool mentions(std::string_view key) const;  // also as null
  [[nodiscard]] std::vector<std::string> keys() const;
  [[nodiscard]] int integer(std::string_view key) const;  // within [-kLimit, kLimit]
  [[nodiscard]] int integer(std::string_view key, int fallback) const;
  [[nodiscard]] double number(std::string_view key) const;
  [[nodiscard]] double number(std::string_view key, double fallback) const;
  [[nodiscard]] bool flag(std::string_view key, bool fallback) const;
  [[nodiscard]] std::string text(std::string_view key, std::string_view fallback) const;
  [[nodiscard]] std::vector<int> integers(std::string_view key) const;       // a number, or a list of them
  [[nodiscard]] std::vector<std::string> texts(std::string_view key) const;  // a list of strings
  [[nodiscard]] std::optional<JsonFields> object(std::string_view key) const;
  [[nodiscard]] const std::string& file() const { return file_; }

  [[noreturn]] void refuse(std::string_view key, const std::string& message) const;

  static constexpr int kLimit = 1 << 30;  // no size of a model comes near it

 private:
  JsonFields(std::string file, std::string text, nlohmann::json value);
  [[nodiscard]] const nlohmann::json& at(std::string_view key) const;
  [[nodiscard]] int as_integer(std::string_view key, const nlohmann::json& value) const;

  std::string file_;
  std::string text_;  // to find the line of a key
  nlohmann::json value_;
};

}  // namespace dculab::engine
