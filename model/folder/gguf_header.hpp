// The header of a model in GGUF, llama.cpp's format: what the model is and which tensors it has. Versions 2 and 3,
// little endian. Source: ggml-org/ggml@d99724f2, docs/gguf.md; types: gguf-py 0.19.0, gguf/constants.py.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace dculab {

// Of an array of texts only how many there are is kept.
struct GgufTexts {
  std::uint64_t count = 0;
};
using GgufValue = std::variant<std::int64_t, double, bool, std::string, std::vector<double>, GgufTexts>;

struct GgufTensor {
  std::string name;
  std::vector<std::uint64_t> shape{};  // the contiguous dimension first
  std::uint32_t type = 0;

  [[nodiscard]] double values() const;
};

struct GgufHeader {
  std::map<std::string, GgufValue> metadata;  // by key: "general.architecture"
  std::vector<GgufTensor> tensors;

  [[nodiscard]] std::optional<double> number(const std::string& key) const;
  [[nodiscard]] std::string text(const std::string& key) const;  // "" where there is none
};

// "Q4_K" and how many bits a value takes; nothing for a type that is not known.
struct GgufType {
  std::uint32_t id = 0;
  std::string_view name;
  double bits = 0;
};
[[nodiscard]] const GgufType* find_gguf_type(std::uint32_t id);

[[nodiscard]] bool is_gguf(std::string_view bytes);

// `bytes`: the beginning of the file, at least its header. Throws InputError, naming `file`, for what is no such header
// and for one that `bytes` cut off.
[[nodiscard]] GgufHeader parse_gguf_header(const std::string& file, std::string_view bytes);
[[nodiscard]] GgufHeader read_gguf_header(const std::string& path);

}  // namespace dculab
