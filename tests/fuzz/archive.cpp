// What somebody sends as results.tar.gz: the archive, and the traces and the machine in it.
#include <string>

#include "config/results_archive.hpp"
#include "files/gzip.hpp"
#include "files/tar.hpp"
#include "tests/fuzz/targets.hpp"

namespace dculab::fuzz {

void read_archive(std::string_view input) {
  const std::string text = files::unpacked("fuzz.tar.gz", std::string(input), 1 << 24);
  for (const files::TarMember& member : files::tar_members("fuzz.tar.gz", text)) {
    const std::string path = "/" + member.name + "/";
    require(!member.name.empty() && path.find("/../") == std::string::npos && !member.name.starts_with('/'),
            "a member lies in the archive");
    require(member.content.data() >= text.data() &&
                member.content.data() + member.content.size() <= text.data() + text.size(),
            "a member's content is the archive's");
  }
  const config::ResultsArchive archive = config::read_results_archive("fuzz.tar.gz", text);
  require(!archive.traces.empty() || !archive.others.empty(), "an archive of results has traces");
}

}  // namespace dculab::fuzz
