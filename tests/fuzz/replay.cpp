// Reads every file of a corpus, and inputs that are too large to be kept: what fuzzing once found stays found.
//
//   fuzz_replay TARGET FOLDER
//
// The last line that it prints names the input that it failed on. At least one file of the corpus must be accepted.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

#include "tests/fuzz/extremes.hpp"
#include "tests/fuzz/targets.hpp"

namespace {

namespace fs = std::filesystem;
using namespace dculab::fuzz;

struct Counts {
  int files = 0;
  int accepted = 0;
};

Counts replay_corpus(const Target& target, const fs::path& folder) {
  std::vector<fs::path> files{fs::directory_iterator(folder), {}};
  std::ranges::sort(files);
  Counts counts;
  for (const fs::path& file : files) {
    std::cout << file.string() << std::endl;
    std::ifstream stream(file, std::ios::binary);
    const Verdict verdict = run(target, std::string{std::istreambuf_iterator<char>(stream), {}});
    ++counts.files;
    counts.accepted += verdict == Verdict::accepted ? 1 : 0;
  }
  return counts;
}

void replay_extremes(const Target& target) {
  for (const Extreme& extreme : extremes()) {
    if (extreme.target != target.name) continue;
    std::cout << extreme.name << std::endl;
    static_cast<void>(run(target, extreme.make()));
  }
}

}  // namespace

int main(int count, char** arguments) {
  const Target* target = count == 3 ? find_target(arguments[1]) : nullptr;
  if (target == nullptr) {
    std::cerr << "usage: fuzz_replay TARGET FOLDER\n";
    return 2;
  }
  const Counts counts = replay_corpus(*target, arguments[2]);
  replay_extremes(*target);
  std::cout << counts.files << " files, " << counts.accepted << " accepted" << std::endl;
  return counts.accepted > 0 ? 0 : 1;
}
