#include "files/tar.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <optional>
#include <set>

#include "core/error.hpp"

namespace dculab::files {
namespace {

constexpr std::size_t kRecord = 512;
constexpr std::size_t kMostMembers = 1000;

// Where a field of a member's header stands: POSIX.1-1988, pages "tar" and "ustar".
struct Field {
  std::size_t offset, size;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kMagic{257, 5}, kPrefix{345, 155};
constexpr std::size_t kType = 156;

[[nodiscard]] std::string_view bytes_of(std::string_view header, Field field) {
  return header.substr(field.offset, field.size);
}

[[nodiscard]] std::string text_of(std::string_view header, Field field) {
  const std::string_view bytes = bytes_of(header, field);
  return std::string(bytes.substr(0, bytes.find('\0')));
}

// Octal digits, between spaces. Nothing for GNU's binary numbers, which only sizes from 8 GiB on need.
[[nodiscard]] std::optional<std::size_t> number_of(std::string_view header, Field field) {
  std::string digits = text_of(header, field);
  std::erase(digits, ' ');
  std::size_t number = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '7') return std::nullopt;
    number = number * 8 + static_cast<std::size_t>(digit - '0');
  }
  return digits.empty() ? std::nullopt : std::optional(number);
}

// The sum of all bytes, with the checksum's own taken for spaces.
[[nodiscard]] std::size_t checksum_of(std::string_view header) {
  const auto add = [](std::size_t sum, char byte) { return sum + static_cast<unsigned char>(byte); };
  const std::string_view own = bytes_of(header, kChecksum);
  return std::accumulate(header.begin(), header.end(), kChecksum.size * ' ', add) -
         std::accumulate(own.begin(), own.end(), std::size_t{0}, add);
}

[[nodiscard]] std::string name_of(std::string_view header) {
  const std::string prefix = text_of(header, kPrefix);
  std::string name = (prefix.empty() ? "" : prefix + "/") + text_of(header, kName);
  while (name.starts_with("./")) name.erase(0, 2);
  return name;
}

[[nodiscard]] std::string quoted(const std::string& name) { return "'" + shown_name(name) + "'"; }

void require_inside(const std::string& file, const std::string& name) {
  const std::string path = "/" + name + "/";
  if (name.empty() || name.starts_with('/') || path.find("/../") != std::string::npos)
    throw InputError(file, "names a file outside of itself, " + quoted(name) + "; do not use this archive");
}

// What follows the name is not for us, but has to be skipped: folders, and pax's further figures.
[[nodiscard]] bool is_skipped(char type) { return type == '5' || type == 'x' || type == 'g'; }
[[nodiscard]] bool is_regular(char type) { return type == '0' || type == '\0'; }

}  // namespace

std::string shown_name(std::string_view name) {
  std::string shown;
  for (const char letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    char escaped[8] = {letter, '\0'};
    if (byte < 0x20 || byte == 0x7F) std::snprintf(escaped, sizeof escaped, "\\x%02x", byte);
    shown += escaped;
  }
  return shown;
}

bool is_tar(std::string_view text) { return text.size() >= kRecord && bytes_of(text, kMagic) == "ustar"; }

std::vector<TarMember> tar_members(const std::string& file, std::string_view text) {
  std::vector<TarMember> members;
  std::set<std::string> names;
  while (text.size() >= kRecord) {
    const std::string_view header = text.substr(0, kRecord);
    if (header.find_first_not_of('\0') == std::string_view::npos) return members;
    const std::optional<std::size_t> size = number_of(header, kSize);
    if (!is_tar(header) || !size || number_of(header, kChecksum) != checksum_of(header) ||
        *size > text.size() - kRecord)
      throw InputError(file, "is a tar archive that is damaged or breaks off; copy it again");
    const std::string name = name_of(header);
    const char type = header[kType];
    require_inside(file, name);
    if (!is_regular(type) && !is_skipped(type))
      throw InputError(file, quoted(name) + " is a link or a device, or its name is too long; pack plain files only");
    if (is_regular(type)) {
      if (members.size() == kMostMembers)
        throw InputError(file, "has more than " + std::to_string(kMostMembers) + " files; pack the results only");
      if (!names.insert(name).second) throw InputError(file, quoted(name) + " is in it twice; pack it again");
      members.push_back({name, text.substr(kRecord, *size)});
    }
    const std::size_t records = (*size + kRecord - 1) / kRecord;
    text.remove_prefix(std::min(text.size(), kRecord * (1 + records)));
  }
  throw InputError(file, "is a tar archive that breaks off; copy it again");
}

}  // namespace dculab::files
