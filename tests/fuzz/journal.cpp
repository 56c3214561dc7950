// A study's journal: the input is a file and, since no fuzzer guesses a checksum, also the payload of a chunk.
#include <array>
#include <filesystem>
#include <string>

#include "config/scenario_file.hpp"
#include "config/search_chunk.hpp"
#include "config/study_journal.hpp"
#include "core/error.hpp"
#include "fields/json_text.hpp"
#include "tests/fuzz/targets.hpp"

namespace dculab::fuzz {
namespace {

using config::JournalStart;
using config::StudyJournal;

void append_and_read(const std::string& path, const std::string& payload) {
  std::filesystem::remove(path);
  StudyJournal(path, {1, "{}", 0, 2, 1, 1}, JournalStart::create).append(payload);
  StudyJournal(path, {1, "{}", 0, 2, 1, 1}, JournalStart::resume).append("last");
  const StudyJournal journal(path);
  require(journal.is_complete(), "a journal goes on where it was");
  require(journal.read(0) == payload && journal.read(1) == "last", "a chunk is read back as written");
}

// What a payload is read as can be written again, byte for byte. Whether it can be read.
bool decode_and_encode(std::string_view payload) {
  bool is_chunk = false;
  constexpr std::array<std::size_t, 1> kAsked{0};
  for (std::uint64_t points = 0; points < 3; ++points) {
    const auto chunk = config::decode(payload, {.num_metrics = 4, .num_points = points, .asked = kAsked});
    if (chunk) require(config::encode(*chunk) == payload, "a chunk is written as it was read");
    is_chunk |= chunk.has_value();
  }
  return is_chunk;
}

void read_document(const std::string& document) {
  try {
    static_cast<void>(config::read_scenario("fuzz", parse_json("fuzz", 1, document)));
  } catch (const InputError&) {
  }
}

// What can be read can be gone on with, and loses nothing by it.
void read_and_resume(const std::string& path) {
  std::vector<std::string> chunks;
  config::JournalHeader header;
  {
    const StudyJournal journal(path);
    header = journal.header();
    for (std::uint64_t index = 0; index < journal.num_chunks(); ++index) chunks.push_back(journal.read(index));
  }
  for (const std::string& chunk : chunks) decode_and_encode(chunk);
  read_document(header.document);
  StudyJournal resumed(path, header, JournalStart::resume);
  require(resumed.num_chunks() == chunks.size(), "a journal that goes on keeps its chunks");
  if (!resumed.is_complete()) {
    chunks.emplace_back("next");
    resumed.append(chunks.back());
  }
  const StudyJournal journal(path);
  require(journal.header() == header && journal.num_chunks() == chunks.size(), "a journal has what was appended");
  for (std::uint64_t index = 0; index < chunks.size(); ++index)
    require(journal.read(index) == chunks[index], "a chunk stays as it was");
}

}  // namespace

void read_journal(std::string_view input) {
  static const ScratchFolder folder;
  const bool is_chunk = decode_and_encode(input);
  append_and_read(folder.path() + "/appended", std::string(input));
  try {
    read_and_resume(folder.write("journal", input));
  } catch (const InputError&) {
    if (!is_chunk) throw;
  }
}

}  // namespace dculab::fuzz
