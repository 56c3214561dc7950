#include "model/folder/gguf_header.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "core/error.hpp"
#include "files/input.hpp"

namespace dculab {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint64_t kMostEntries = 1 << 20, kMostDimensions = 4, kMostNumbers = 1 << 16;
constexpr std::size_t kLargestHeader = std::size_t{256} << 20U;  // vocabularies are some MB

constexpr std::array kTypes{
    GgufType{0, "F32", 32},          GgufType{1, "F16", 16},         GgufType{2, "Q4_0", 4.5},
    GgufType{3, "Q4_1", 5},          GgufType{6, "Q5_0", 5.5},       GgufType{7, "Q5_1", 6},
    GgufType{8, "Q8_0", 8.5},        GgufType{10, "Q2_K", 2.625},    GgufType{11, "Q3_K", 3.4375},
    GgufType{12, "Q4_K", 4.5},       GgufType{13, "Q5_K", 5.5},      GgufType{14, "Q6_K", 6.5625},
    GgufType{16, "IQ2_XXS", 2.0625}, GgufType{17, "IQ2_XS", 2.3125}, GgufType{18, "IQ3_XXS", 3.0625},
    GgufType{19, "IQ1_S", 1.5625},   GgufType{20, "IQ4_NL", 4.5},    GgufType{21, "IQ3_S", 3.4375},
    GgufType{22, "IQ2_S", 2.5625},   GgufType{23, "IQ4_XS", 4.25},   GgufType{29, "IQ1_M", 1.75},
    GgufType{30, "BF16", 16},        GgufType{34, "TQ1_0", 1.6875},  GgufType{35, "TQ2_0", 2.0625},
    GgufType{39, "MXFP4", 4.25},     GgufType{40, "NVFP4", 4.5},     GgufType{42, "Q2_0", 2.25}};

// Types of metadata, by their number.
enum class ValueType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, flag, text, array, u64, i64, f64 };

class Reader {
 public:
  Reader(const std::string& file, std::string_view bytes) : file_(file), rest_(bytes) {}

  template <class Number>
  [[nodiscard]] Number number() {
    std::array<char, sizeof(Number)> raw{};
    const std::string_view bytes = take(sizeof(Number));
    std::ranges::copy(bytes, raw.begin());
    if constexpr (std::endian::native == std::endian::big) std::ranges::reverse(raw);
    return std::bit_cast<Number>(raw);
  }

  [[nodiscard]] std::string text() { return std::string(take(number<std::uint64_t>())); }

  [[nodiscard]] std::uint64_t count(std::uint64_t most, const char* what) {
    const auto found = number<std::uint64_t>();
    if (found > most) fail("has " + std::to_string(found) + " " + what);
    return found;
  }

  [[nodiscard]] GgufValue value(std::uint32_t type) {
    if (static_cast<ValueType>(type) == ValueType::array) return list();
    return single(type);
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw InputError(file_, why + ": not a GGUF header that is known; download the file again");
  }

 private:
  [[nodiscard]] std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) fail("breaks off in its header");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  [[nodiscard]] GgufValue single(std::uint32_t type) {
    switch (static_cast<ValueType>(type)) {
      case ValueType::u8:
        return std::int64_t{number<std::uint8_t>()};
      case ValueType::i8:
        return std::int64_t{number<std::int8_t>()};
      case ValueType::u16:
        return std::int64_t{number<std::uint16_t>()};
      case ValueType::i16:
        return std::int64_t{number<std::int16_t>()};
      case ValueType::u32:
        return std::int64_t{number<std::uint32_t>()};
      case ValueType::i32:
        return std::int64_t{number<std::int32_t>()};
      case ValueType::f32:
        return static_cast<double>(number<float>());
      case ValueType::flag:
        return number<std::uint8_t>() != 0;
      case ValueType::text:
        return text();
      case ValueType::u64:
        return static_cast<std::int64_t>(number<std::uint64_t>());
      case ValueType::i64:
        return number<std::int64_t>();
      case ValueType::f64:
        return number<double>();
      case ValueType::array:
        break;
    }
    fail("has a value of type " + std::to_string(type));
  }

  [[nodiscard]] GgufValue list() {
    const auto type = number<std::uint32_t>();
    const auto size = number<std::uint64_t>();
    if (static_cast<ValueType>(type) == ValueType::array) fail("has lists of lists");
    if (static_cast<ValueType>(type) == ValueType::text) {
      for (std::uint64_t index = 0; index < size; ++index) static_cast<void>(take(number<std::uint64_t>()));
      return GgufTexts{size};
    }
    std::vector<double> numbers;  // of long ones, scores of tokens, the first
    for (std::uint64_t index = 0; index < size; ++index) {
      const GgufValue each = single(type);
      if (index >= kMostNumbers) continue;
      std::visit(
          [&numbers](const auto& value) {
            if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>)
              numbers.push_back(static_cast<double>(value));
          },
          each);
    }
    return numbers;
  }

  const std::string& file_;
  std::string_view rest_;
};

[[nodiscard]] GgufTensor read_tensor(Reader& reader) {
  GgufTensor tensor{.name = reader.text()};
  const auto dimensions = reader.number<std::uint32_t>();
  if (dimensions > kMostDimensions) reader.fail("has a tensor of " + std::to_string(dimensions) + " dimensions");
  for (std::uint32_t index = 0; index < dimensions; ++index) tensor.shape.push_back(reader.number<std::uint64_t>());
  tensor.type = reader.number<std::uint32_t>();
  static_cast<void>(reader.number<std::uint64_t>());  // where its data begin
  return tensor;
}

}  // namespace

double GgufTensor::values() const {
  double product = 1;
  for (const std::uint64_t size : shape) product *= static_cast<double>(size);
  return product;
}

std::optional<double> GgufHeader::number(const std::string& key) const {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return std::nullopt;
  if (const auto* whole = std::get_if<std::int64_t>(&found->second)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&found->second)) return *real;
  return std::nullopt;
}

std::string GgufHeader::text(const std::string& key) const {
  const auto found = metadata.find(key);
  const auto* text = found == metadata.end() ? nullptr : std::get_if<std::string>(&found->second);
  return text == nullptr ? "" : *text;
}

const GgufType* find_gguf_type(std::uint32_t id) {
  const auto* found = std::ranges::find(kTypes, id, &GgufType::id);
  return found == kTypes.end() ? nullptr : found;
}

bool is_gguf(std::string_view bytes) { return bytes.starts_with(kMagic); }

GgufHeader parse_gguf_header(const std::string& file, std::string_view bytes) {
  if (!is_gguf(bytes)) throw InputError(file, "is no GGUF file: it does not begin with GGUF");
  Reader reader(file, bytes.substr(kMagic.size()));
  const auto version = reader.number<std::uint32_t>();
  if (version < 2 || version > 3)
    throw InputError(file, "is GGUF of version " + std::to_string(version) +
                               "; 2 and 3 of little-endian machines are read: convert the model again");
  const std::uint64_t tensors = reader.count(kMostEntries, "tensors");
  const std::uint64_t entries = reader.count(kMostEntries, "entries");
  GgufHeader header;
  for (std::uint64_t index = 0; index < entries; ++index) {
    std::string key = reader.text();
    const auto type = reader.number<std::uint32_t>();
    header.metadata.insert_or_assign(std::move(key), reader.value(type));
  }
  for (std::uint64_t index = 0; index < tensors; ++index) header.tensors.push_back(read_tensor(reader));
  return header;
}

GgufHeader read_gguf_header(const std::string& path) {
  const auto next = files::read_text_pieces(path, std::numeric_limits<std::size_t>::max());
  std::string beginning;
  for (std::string_view piece = next(); !piece.empty() && beginning.size() < kLargestHeader; piece = next()) {
    beginning += piece;
    // A header is parsed when it seems whole: most are within the first 16 MiB.
    constexpr std::size_t kLook = std::size_t{16} << 20U;
    if (beginning.size() % kLook != 0) continue;
    try {
      return parse_gguf_header(path, beginning);
    } catch (const InputError&) {
      continue;  // what follows may complete it
    }
  }
  return parse_gguf_header(path, beginning);
}

}  // namespace dculab
