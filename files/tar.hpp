// The members of a tar archive, in memory. Nothing is unpacked to the disk, so a name in an archive is never a path of
// this machine. A reader of our own, because the wheel would have to carry libarchive along for one plain format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dculab::files {

struct TarMember {
  std::string name;  // "folder/file": relative, without ".."
  std::string_view content;
};

// A member's name in a message, which it must not break into lines: control characters become "\x0a".
[[nodiscard]] std::string shown_name(std::string_view name);

[[nodiscard]] bool is_tar(std::string_view text);

// The regular files of the archive `text`, of which they are views. Throws InputError, naming `file`, for an archive
// that is damaged or has links, devices, names that lead out of it, one name twice, or more than 1000 members.
[[nodiscard]] std::vector<TarMember> tar_members(const std::string& file, std::string_view text);

}  // namespace dculab::files
