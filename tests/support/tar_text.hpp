// Tar archives for tests, also those that no program writes.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace dculab {

// A member's header and content as POSIX's ustar has them, filled up to whole records.
inline std::string tar_member(std::string_view name, std::string_view content, char type = '0') {
  std::string header(512, '\0');
  const auto put = [&header](std::size_t offset, std::string_view text) { header.replace(offset, text.size(), text); };
  char number[16];
  put(0, name.substr(0, 100));
  put(100, "0000644");
  std::snprintf(number, sizeof number, "%011zo", content.size());
  put(124, number);
  put(148, "        ");
  header[156] = type;
  put(257, std::string_view("ustar\0"
                            "00",
                            8));
  unsigned sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  std::snprintf(number, sizeof number, "%06o", sum);
  put(148, std::string_view(number, 7));
  return header + std::string(content) + std::string((512 - content.size() % 512) % 512, '\0');
}

inline std::string tar_end() { return std::string(1024, '\0'); }

}  // namespace dculab
