#include "config/file_kind.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "config/known_format.hpp"
#include "core/error.hpp"
#include "fields/printable_text.hpp"

namespace dculab::config {
namespace {

struct FileKind {
  std::string_view schema;  // without its version
  std::string_view noun;
  std::string_view use;
};
constexpr std::array kKinds{
    FileKind{"dculab/machine/", "a machine", "give it as --machine, or to `dculab show`"},
    FileKind{"dculab/stack/", "a stack", "give it as --stack, or to `dculab show`"},
    FileKind{"dculab/scenario/", "a scenario", "give it to `dculab study`, `dculab simulate` or `dculab show`"},
    FileKind{"dculab/trace/", "a trace", "give it to `dculab calibrate` or `dculab validate`"},
};

[[nodiscard]] const FileKind* kind_of(std::string_view schema) {
  const auto kind =
      std::ranges::find_if(kKinds, [schema](const auto& each) { return schema.starts_with(each.schema); });
  return kind == kKinds.end() ? nullptr : &*kind;
}

}  // namespace

void require_kind(const std::string& file, const Node& document, std::string_view schema) {
  if (document.kind != NodeKind::map) return;
  const Node* found = document.find("schema");
  if (found == nullptr)
    throw InputError(file, document.place.line,
                     "schema: missing; write " + in_quotes("schema: " + std::string(schema)) + " in the first line");
  const FileKind *kind = kind_of(found->text), *wanted = kind_of(schema);
  if (kind == nullptr || kind == wanted) return;
  throw InputError(file, found->place.line,
                   "is " + std::string(kind->noun) + " (schema: " + found->text + "), not " +
                       std::string(wanted->noun) + "; " + std::string(kind->use));
}

void refuse_other_format(const std::string& file, std::string_view text) {
  const std::optional<KnownFormat> format = recognize(text);
  if (!format || *format == KnownFormat::yaml) return;
  if (*format == KnownFormat::trace && text.find("dculab/trace/") == std::string_view::npos) return;  // a scenario
  throw InputError(file, "is " + std::string(description(*format)));
}

}  // namespace dculab::config
