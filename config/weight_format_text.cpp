#include "config/weight_format_text.hpp"

#include <charconv>
#include <string_view>
#include <utility>

#include "config/gguf_format.hpp"
#include "core/error.hpp"
#include "core/letter_case.hpp"
#include "fields/printable_text.hpp"

namespace dculab::config {
namespace {

constexpr std::string_view kGptq = "gptq-";
constexpr int kGptqGroup = 128;  // AutoGPTQ's default
constexpr int kLargestGroup = 1 << 16;
constexpr std::string_view kChannel = "-channel";

// The number after "-g" at the end, which is cut off; 0 when there is none, -1 for "-channel".
int take_group(std::string_view& text) {
  if (text.ends_with(kChannel)) {
    text.remove_suffix(kChannel.size());
    return -1;
  }
  const std::size_t mark = text.rfind("-g");
  if (mark == std::string_view::npos || mark + 2 == text.size()) return 0;
  int group = 0;
  const auto [end, error] = std::from_chars(text.data() + mark + 2, text.data() + text.size(), group);
  if (error != std::errc() || end != text.data() + text.size() || group < 1 || group > kLargestGroup) return 0;
  text = text.substr(0, mark);
  return group;
}

struct NamedFormat {
  std::string_view text;
  WeightFormat format;
};

// Formats with scales of their own kind.
constexpr NamedFormat kNamed[] = {
    {"mxfp4", {Dtype::mxfp4, kMxfp4Group, ScaleFormat::e8m0}},
    {"nf4", {Dtype::nf4, kBitsAndBytesGroup, ScaleFormat::f32}},
    {"nf4-double", {Dtype::nf4, kBitsAndBytesGroup, ScaleFormat::f32_of_bytes}},
    {"fp4", {Dtype::fp4, kBitsAndBytesGroup, ScaleFormat::f32}},
    {"fp4-double", {Dtype::fp4, kBitsAndBytesGroup, ScaleFormat::f32_of_bytes}},
    {"llm-int8", {Dtype::int8, -1, ScaleFormat::f32}},
};

}  // namespace

WeightFormat parse_weight_format(const std::string& text) {
  const std::string written = lower_case(text);
  for (const NamedFormat& named : kNamed)
    if (named.text == written) return named.format;
  // As the programs and the Hub call them.
  if (written == "awq" || written == "gptq") return {Dtype::int4, kGptqGroup};
  if (written == "w8a8") return {Dtype::int8, -1};
  if (const GgufFormat* gguf = find_gguf_format(written)) return gguf->format;
  std::string_view rest = written;
  const int group = take_group(rest);
  const bool gptq = rest.starts_with(kGptq);
  if (gptq) rest.remove_prefix(kGptq.size());
  const std::optional<Dtype> dtype = parse_dtype(rest);
  const bool grouped =
      gptq && (dtype == Dtype::int2 || dtype == Dtype::int3 || dtype == Dtype::int4 || dtype == Dtype::int8);
  if (!dtype || (gptq && !grouped) || (group != 0 && !gptq))
    throw InputError(
        in_quotes(text) +
        " is not a weight format; write a dtype such as bf16, or awq, w8a8, q4_k_m, gptq-int4, gptq-int4-g32, mxfp4, "
        "nf4, nf4-double, llm-int8");
  return {*dtype, !gptq ? 0 : group == 0 ? kGptqGroup : group};
}

std::string weight_format_text(WeightFormat format) {
  for (const NamedFormat& named : kNamed)
    if (named.format == format) return std::string(named.text);
  const std::string dtype(name(format.dtype));
  if (format.group_size == 0) return dtype;
  if (format.group_size < 0) return std::string(kGptq) + dtype + std::string(kChannel);
  const std::string group = format.group_size == kGptqGroup ? "" : "-g" + std::to_string(format.group_size);
  return std::string(kGptq) + dtype + group;
}

void read_weights(MapReader& reader, std::optional<WeightFormat>& weights) {
  std::string text;
  const Node* node = reader.optional("weights");
  if (node == nullptr) return;
  reader.read(*node, text);
  if (text.empty() || lower_case(text) == "checkpoint") return;
  try {
    weights = parse_weight_format(text);
  } catch (const InputError& error) {
    reader.complain(*node, reader.path_to("weights") + ": " + error.what());
  }
}

FileKey weights_key(std::string meaning) {
  FileKey key{.key = "weights", .meaning = std::move(meaning)};
  key.absent = "`checkpoint`";
  key.values = {{.kind = ValueKind::text}};
  return key;
}

}  // namespace dculab::config
