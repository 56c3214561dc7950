// A journal outlives whatever ends the program that writes it, and is refused where it does not belong.
#include "config/study_journal.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kOverhead = 24;  // of a record, beside its payload

struct JournalFileName {
  std::string path = (fs::temp_directory_path() / ("dculab-journal-" + std::to_string(::getpid()))).string();
  JournalFileName() { fs::remove(path); }
  ~JournalFileName() { fs::remove(path); }
};

JournalHeader header() { return {42, R"({"question":"q"})", 5, 8, 2, 3}; }

std::string payload(int chunk) { return std::string(static_cast<std::size_t>(100 * chunk), 'a') + '\0' + "\n"; }

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_two(const std::string& path) {
  StudyJournal journal(path, header(), JournalStart::create);
  journal.append(payload(1));
  journal.append(payload(2));
}

TEST_CASE("what was appended is read back, and the journal goes on") {
  const JournalFileName file;
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
  const JournalFileName file;
  write_two(file.path);
  const auto size = fs::file_size(file.path);
  const auto second = size - payload(2).size() - kOverhead, first = second - payload(1).size() - kOverhead;
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

// Opens a journal whose bytes are `bytes` and says why it is refused, or "" and the chunks that it kept.
struct Opened {
  std::string refusal;
  std::vector<std::string> chunks;
};
Opened open_with(const std::string& path, const std::string& bytes, JournalStart start) {
  std::ofstream(path, std::ios::binary) << bytes;
  Opened opened;
  try {
    const StudyJournal journal(path, header(), start);
    for (std::uint64_t index = 0; index < journal.num_chunks(); ++index) opened.chunks.push_back(journal.read(index));
  } catch (const InputError& error) {
    opened.refusal = error.what();
    CHECK(bytes_of(path) == bytes);  // and left as it is
  }
  return opened;
}

TEST_CASE("whatever byte is wrong, a journal is refused or gives back chunks that were written") {
  const JournalFileName file;
  write_two(file.path);
  const std::string whole = bytes_of(file.path);
  const std::vector<std::string> chunks{payload(1), payload(2)};
  const std::size_t second = whole.size() - payload(2).size() - kOverhead;
  for (std::size_t place = 0; place < whole.size(); ++place) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[place] = static_cast<char>(damaged[place] ^ change);
      INFO("byte " << place << " of " << whole.size() << ", changed by " << change);
      const Opened resumed = open_with(file.path, damaged, JournalStart::resume);
      const bool is_last = place >= second;  // as if it was torn
      REQUIRE(resumed.refusal.empty() == is_last);
      REQUIRE(resumed.chunks.size() == (is_last ? 1 : 0));
      if (is_last) REQUIRE(resumed.chunks[0] == chunks[0]);
    }
  }
}

TEST_CASE("what stands before damage is kept on request, and the rest is predicted anew") {
  const JournalFileName file;
  write_two(file.path);
  const std::string whole = bytes_of(file.path);
  const std::size_t second = whole.size() - payload(2).size() - kOverhead;
  std::string three = whole + record_bytes(whole.size(), payload(3));
  // In a payload, in its checksum, in a length (which then reaches behind the end of the file), in that one's checksum.
  for (const std::size_t place : {second + 50, whole.size() - 1, second + 2, second + 9}) {
    std::string damaged = three;
    damaged[place] = static_cast<char>(damaged[place] ^ 0x10);
    INFO("byte " << place);
    CHECK_THAT(
        open_with(file.path, damaged, JournalStart::resume).refusal,
        ContainsSubstring("is damaged at byte " + std::to_string(second) + ", behind 1 whole chunk; study --salvage"));
    CHECK_THROWS_WITH(StudyJournal(file.path), ContainsSubstring("is damaged at byte"));
    {
      const StudyJournal salvaged(file.path, header(), JournalStart::salvage);
      CHECK(salvaged.num_dropped_bytes() == three.size() - second);
      REQUIRE(salvaged.num_chunks() == 1);
    }
    StudyJournal resumed(file.path, header(), JournalStart::resume);
    resumed.append(payload(2));
    resumed.append(payload(3));
    CHECK(bytes_of(file.path) == three);
  }
}

TEST_CASE("a damaged header is written anew on request, where it tells which study and shard it is of") {
  const JournalFileName file;
  write_two(file.path);
  const std::string whole = bytes_of(file.path);
  const std::size_t chunks = whole.size() - payload(2).size() - payload(1).size() - 2 * kOverhead;
  const std::size_t line = whole.find("42 5 8 2 3\n");
  const std::string format = "dculab study journal 2\n";
  for (std::size_t place = format.size(); place < chunks; ++place) {
    INFO("byte " << place);
    std::string damaged = whole;
    damaged[place] = static_cast<char>(damaged[place] ^ 0x10);
    CHECK_THAT(open_with(file.path, damaged, JournalStart::resume).refusal,
               ContainsSubstring("is damaged before its first chunk; study --salvage"));
    const Opened salvaged = open_with(file.path, damaged, JournalStart::salvage);
    const bool is_known = place < line || place >= line + 11;
    CHECK(salvaged.refusal.empty() == is_known);
    CHECK(bytes_of(file.path) == (is_known ? whole : damaged));
  }
}

TEST_CASE("a record that is no chunk is damage, also where it is the last one") {
  const JournalFileName file;
  write_two(file.path);
  const ChunkCheck is_chunk = [](std::uint64_t chunk, std::string_view bytes) {
    return bytes != payload(2) || chunk != header().begin + 1;
  };
  const auto open = [&](JournalStart start) { return StudyJournal(file.path, header(), start, is_chunk); };
  CHECK_THROWS_WITH(open(JournalStart::resume), ContainsSubstring("is damaged at byte"));
  const auto size = fs::file_size(file.path);
  StudyJournal salvaged = open(JournalStart::salvage);
  CHECK(salvaged.num_chunks() == 1);
  CHECK(salvaged.num_dropped_bytes() == size - fs::file_size(file.path));
}

// What begins like a record of `size` bytes.
std::string forged_head(std::size_t place, std::size_t size) {
  return record_bytes(place, std::string(size, '\0')).substr(0, 16);
}

TEST_CASE("forged heads of records cost no more than the file is large") {
  const JournalFileName file;
  write_two(file.path);
  const std::string whole = bytes_of(file.path);
  const auto with_heads = [&](std::size_t claimed) {
    std::string bytes = whole + '\x5a';
    while (bytes.size() < whole.size() + 20'000) bytes += forged_head(bytes.size(), claimed);
    return bytes + std::string(20'000, '\x5a');
  };
  // Those that reach behind the end are none, however many there are.
  CHECK(open_with(file.path, with_heads(60'000), JournalStart::resume).chunks.size() == 2);
  CHECK_THAT(open_with(file.path, with_heads(10'000), JournalStart::resume).refusal,
             ContainsSubstring("is damaged at byte"));
}

TEST_CASE("a tail that a loss of power leaves is dropped: zeros, garbage, a record with a hole") {
  const JournalFileName file;
  write_two(file.path);
  const std::string whole = bytes_of(file.path);
  const std::string record = record_bytes(whole.size(), payload(3));
  std::string hole = record;
  hole.replace(30, 100, 100, '\0');
  for (const std::string& tail :
       {std::string(4096, '\0'), std::string(500'000, '\0'), std::string(7, '\0'), hole, hole + std::string(4096, '\0'),
        std::string(3000, '\x5a'), std::string(record.size(), '\0') + hole,
        record.substr(0, 20) + std::string(90, '\0')}) {
    INFO(tail.size() << " bytes");
    const Opened resumed = open_with(file.path, whole + tail, JournalStart::resume);
    CHECK(resumed.chunks == std::vector<std::string>{payload(1), payload(2)});
    CHECK(bytes_of(file.path) == whole);
  }
}

TEST_CASE("a file that is no torn journal is not written over") {
  const JournalFileName file;
  write_two(file.path);
  const std::string whole = bytes_of(file.path);
  const std::size_t start = whole.size() - payload(2).size() - payload(1).size() - 2 * kOverhead;
  for (const std::size_t zeros :
       {std::size_t{1}, std::size_t{22}, std::size_t{23}, start, start + 1, std::size_t{10'000}}) {
    INFO(zeros << " zeros");
    CHECK_THAT(open_with(file.path, std::string(zeros, '\0'), JournalStart::resume).refusal,
               ContainsSubstring(zeros <= start ? "begins with zeros; if it is one, --salvage" : "is no journal"));
    CHECK(open_with(file.path, std::string(zeros, '\0'), JournalStart::salvage).refusal.empty() == (zeros <= start));
  }
  for (const std::string& other :
       {std::string("\0x", 2), std::string("dculab study journey"), whole.substr(1), std::string("d\0x", 3)})
    CHECK_THAT(open_with(file.path, other, JournalStart::resume).refusal,
               ContainsSubstring("is no journal of a study"));
  std::string torn = whole.substr(0, start);  // its header, on its way to the disk
  torn.replace(kOverhead + 30, 10, 10, '\0');
  CHECK(open_with(file.path, torn, JournalStart::resume).refusal.empty());
  CHECK(bytes_of(file.path) == whole.substr(0, start));
}

TEST_CASE("a journal of an older format is refused with what to do") {
  const JournalFileName file;
  CHECK_THAT(open_with(file.path, "dculab study journal 1\n12345678", JournalStart::salvage).refusal,
             ContainsSubstring("is of an older dculab; finish it with that one"));
}

TEST_CASE("what is no file is no journal") {
  const JournalFileName file;
  CHECK_THROWS_WITH(StudyJournal(fs::temp_directory_path().string()), ContainsSubstring("is a folder, not a file"));
  REQUIRE(::mkfifo(file.path.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(StudyJournal(file.path), ContainsSubstring("is a FIFO, not a file"));
  for (const JournalStart start : {JournalStart::create, JournalStart::resume})
    CHECK_THROWS_WITH(StudyJournal(file.path, header(), start), ContainsSubstring("is a FIFO, not a file"));
}

TEST_CASE("journals of something else, in use or there already are refused") {
  const JournalFileName file;
  write_two(file.path);
  const auto opening = [&file](const JournalHeader& wanted, JournalStart start) {
    return [&file, wanted, start] { StudyJournal(file.path, wanted, start); };
  };
  CHECK_THROWS_WITH(opening(header(), JournalStart::create)(), ContainsSubstring("add --resume"));
  JournalHeader other = header();
  other.identity = 43;
  CHECK_THROWS_WITH(opening(other, JournalStart::resume)(),
                    ContainsSubstring("of another scenario, machine, stack, model"));
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
