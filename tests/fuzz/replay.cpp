// Reads every file of a corpus, and inputs that are too large to be kept: what fuzzing once found stays found.
//
//   fuzz_replay TARGET FOLDER
//
// The last line that it prints names the input that it failed on. Of the files that fuzzing began with, a reader
// refuses those named seed-bad-... and accepts the other seed-... .
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

#include "tests/fuzz/extremes.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/sanitized.hpp"

namespace {

namespace fs = std::filesystem;
using namespace dculab::fuzz;

// How many files the reader must accept or refuse, and does not.
int replay_corpus(const Target& target, const fs::path& folder) {
  std::vector<fs::path> files{fs::directory_iterator(folder), {}};
  std::ranges::sort(files);
  int seeds = 0;
  int wrong = 0;
  for (const fs::path& file : files) {
    std::cout << file.string() << std::endl;
    std::ifstream stream(file, std::ios::binary);
    const Verdict verdict = run(target, std::string{std::istreambuf_iterator<char>(stream), {}});
    const std::string name = file.filename().string();
    if (!name.starts_with("seed-")) continue;
    ++seeds;
    if ((verdict == Verdict::refused) == name.starts_with("seed-bad-")) continue;
    ++wrong;
    std::cout << "  is " << (verdict == Verdict::refused ? "refused" : "accepted") << std::endl;
  }
  std::cout << files.size() << " files, " << seeds << " seeds, " << wrong << " of them read wrongly" << std::endl;
  return seeds > 0 ? wrong : 1;
}

void replay_extremes(const Target& target) {
  for (const Extreme& extreme : extremes()) {
    if (extreme.target != target.name) continue;
    std::cout << extreme.name << std::endl;
    static_cast<void>(run(target, extreme.make()));
  }
}

// Sanitizers take far more address space than memory.
void limit_memory() {
  constexpr rlim_t kBytes = rlim_t{4} << 30;
  const rlimit limit{kBytes, kBytes};
  if (!dculab::kSanitized && setrlimit(RLIMIT_AS, &limit) != 0) std::cerr << "fuzz_replay: memory has no limit\n";
}

}  // namespace

int main(int count, char** arguments) {
  const Target* target = count == 3 ? find_target(arguments[1]) : nullptr;
  if (target == nullptr) {
    std::cerr << "usage: fuzz_replay TARGET FOLDER\n";
    return 2;
  }
  limit_memory();
  const int wrong = replay_corpus(*target, arguments[2]);
  replay_extremes(*target);
  return wrong == 0 ? 0 : 1;
}
