// A study's finished chunks on disk, so that a study that was stopped goes on where it was, and the parts of a study
// that ran in several places become one.
//
// The file only grows: a line that names the format, then records. The first record is the header, each later one a
// chunk, in order. A record is its length, its payload and a checksum. A record that the file ends in was being written
// when the study was stopped, and is dropped; a whole one whose checksum is wrong is damage, and is refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dculab::config {

struct JournalHeader {
  std::uint64_t identity = 0;  // of program, scenario, machines and models: chunks of another would not fit
  std::string document;        // the scenario, as JSON
  std::uint64_t begin = 0;     // chunks of this journal
  std::uint64_t end = 0;
  int shard = 1;  // which part of the study
  int shards = 1;

  // Whether both are of one part of one study. Documents of one identity differ in where the requests' file lies.
  [[nodiscard]] bool fits(JournalHeader other) const {
    other.document = document;
    return *this == other;
  }

  friend bool operator==(const JournalHeader&, const JournalHeader&) = default;
};

enum class JournalStart : std::uint8_t { create, resume };

class StudyJournal {
 public:
  // For appending. `create` refuses a file that is there; `resume` goes on with one, or creates it. Throws InputError,
  // also for a journal of something else, a damaged one and one that another process appends to.
  StudyJournal(const std::string& path, const JournalHeader& header, JournalStart start);
  // For reading. Throws InputError when it is no journal, or damaged.
  explicit StudyJournal(const std::string& path);
  StudyJournal(const StudyJournal&) = delete;
  StudyJournal& operator=(const StudyJournal&) = delete;

  [[nodiscard]] const JournalHeader& header() const { return header_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::uint64_t num_chunks() const { return records_.size(); }
  [[nodiscard]] bool is_complete() const { return num_chunks() == header_.end - header_.begin; }

  // The payload of chunk header().begin + index. Precondition: index < num_chunks().
  [[nodiscard]] std::string read(std::uint64_t index) const;
  // The next chunk. It is with the operating system when this returns: killing the program does not lose it.
  void append(const std::string& payload);

 private:
  struct Descriptor {
    int number = -1;
    ~Descriptor();
  };
  struct Record {
    std::uint64_t begin = 0;  // of the payload in the file
    std::uint64_t size = 0;
  };
  void load();
  [[nodiscard]] bool load_record(Record& record, std::string& payload);
  [[nodiscard]] bool read_all(char* target, std::size_t size, std::uint64_t begin) const;
  void write(const std::string& payload);
  [[noreturn]] void refuse(const std::string& why) const;
  [[noreturn]] void refuse_damaged() const;

  std::string path_;
  Descriptor descriptor_;   // closed also where a constructor throws
  std::uint64_t size_ = 0;  // of what is sound
  JournalHeader header_;
  std::vector<Record> records_;
};

}  // namespace dculab::config
