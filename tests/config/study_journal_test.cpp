// A journal outlives whatever ends the program that writes it, and is refused where it does not belong.
#include "config/study_journal.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

namespace fs = std::filesystem;

struct JournalFile {
  std::string path = (fs::temp_directory_path() / ("dculab-journal-" + std::to_string(::getpid()))).string();
  JournalFile() { fs::remove(path); }
  ~JournalFile() { fs::remove(path); }
};

JournalHeader header() { return {42, R"({"question":"q"})", 5, 8, 2, 3}; }

std::string payload(int chunk) { return std::string(static_cast<std::size_t>(100 * chunk), 'a') + '\0' + "\n"; }

void write_two(const std::string& path) {
  StudyJournal journal(path, header(), JournalStart::create);
  journal.append(payload(1));
  journal.append(payload(2));
}

TEST_CASE("what was appended is read back, and the journal goes on") {
  const JournalFile file;
  write_two(file.path);
  {
    StudyJournal journal(file.path, header(), JournalStart::resume);
    REQUIRE(journal.num_chunks() == 2);
    CHECK(journal.read(1) == payload(2));
    CHECK_FALSE(journal.is_complete());
    journal.append(payload(3));
  }
  const StudyJournal journal(file.path);
  CHECK(journal.header() == header());
  CHECK(journal.is_complete());
  CHECK(journal.read(0) == payload(1));
  CHECK(journal.read(2) == payload(3));
}

TEST_CASE("wherever the file was torn, whole chunks stay and the rest is written anew") {
  const JournalFile file;
  write_two(file.path);
  const auto size = fs::file_size(file.path);
  const auto second = size - payload(2).size() - 16, first = second - payload(1).size() - 16;
  for (std::uintmax_t length = 0; length < size; ++length) {
    fs::remove(file.path);
    write_two(file.path);
    fs::resize_file(file.path, length);
    StudyJournal journal(file.path, header(), JournalStart::resume);
    INFO(length << " of " << size << " bytes");
    REQUIRE(journal.num_chunks() == (length >= second ? 1U : 0U));
    while (journal.num_chunks() < 2) journal.append(payload(static_cast<int>(journal.num_chunks()) + 1));
    CHECK(journal.read(0) == payload(1));
    CHECK(fs::file_size(file.path) == size);
  }
  CHECK(first > 0);
}

TEST_CASE("a journal with a wrong byte in a whole record is refused and left as it is") {
  const JournalFile file;
  write_two(file.path);
  const auto size = fs::file_size(file.path), second = size - payload(2).size() - 16;
  const auto first = second - payload(1).size() - 16;
  // In the header, in a chunk that others follow, in the last one's length (its highest byte) and in the last one.
  for (const std::uintmax_t place : {first - 20, second - 50, second + 7, size - 50}) {
    fs::remove(file.path);
    write_two(file.path);
    std::fstream stream(file.path, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(place));
    stream.put('\x5a');
    stream.close();
    INFO("byte " << place << " of " << size);
    CHECK_THROWS_WITH(StudyJournal(file.path), ContainsSubstring("is damaged at byte"));
    CHECK_THROWS_WITH(StudyJournal(file.path, header(), JournalStart::resume), ContainsSubstring("is damaged at byte"));
    CHECK(fs::file_size(file.path) == size);
  }
}

TEST_CASE("what cannot be read is not taken for the end of the journal") {
  const fs::path folder = fs::temp_directory_path();
  CHECK_THROWS_WITH(StudyJournal(folder.string()), ContainsSubstring("cannot be read (Is a directory)"));
}

TEST_CASE("journals of something else, in use or there already are refused") {
  const JournalFile file;
  write_two(file.path);
  const auto opening = [&file](const JournalHeader& wanted, JournalStart start) {
    return [&file, wanted, start] { StudyJournal(file.path, wanted, start); };
  };
  CHECK_THROWS_WITH(opening(header(), JournalStart::create)(), ContainsSubstring("add --resume"));
  JournalHeader other = header();
  other.identity = 43;
  CHECK_THROWS_WITH(opening(other, JournalStart::resume)(), ContainsSubstring("of another scenario, machine, model"));
  other = header();
  other.shard = 1;
  CHECK_THROWS_WITH(opening(other, JournalStart::resume)(), ContainsSubstring("of another shard"));
  other = header();
  other.document = R"({"question":"q","workload":{"file":"/moved"}})";  // of the same identity
  CHECK_NOTHROW(opening(other, JournalStart::resume)());
  {
    const StudyJournal journal(file.path, header(), JournalStart::resume);
    CHECK_THROWS_WITH(opening(header(), JournalStart::resume)(), ContainsSubstring("being written by another study"));
  }
  std::ofstream(file.path) << "schema: dculab/scenario/1\nquestion: is this a journal?\n";
  CHECK_THROWS_WITH(opening(header(), JournalStart::resume)(), ContainsSubstring("is no journal of a study"));
  CHECK_THROWS_WITH(StudyJournal(file.path), ContainsSubstring("is no journal of a study"));
}

}  // namespace
}  // namespace dculab::config
