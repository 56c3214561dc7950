// A study's finished chunks on disk, so that a study that was stopped goes on where it was, and the parts of a study
// that ran in several places become one.
//
// The file only grows: a line that names the format, then records (config/journal_file). The first is the header, each
// later one a chunk, in order. What stands behind the last whole record was being written when the program or the power
// went, and is dropped. Where whole records stand behind one that is not, something in between was damaged, and so is a
// record with right checksums that is no chunk: the journal is refused until the user asks to salvage what stands
// before.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "config/journal_file.hpp"

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

enum class JournalStart : std::uint8_t { create, resume, salvage };

// Whether `payload` can be chunk number `chunk` of the study.
using ChunkCheck = std::function<bool(std::uint64_t chunk, std::string_view payload)>;

class StudyJournal {
 public:
  // For appending. `create` refuses a file that is there; `resume` goes on with one, or creates it; `salvage` does so
  // with a damaged one too, and drops what stands behind the damage. Without `is_chunk` any payload is a chunk. Throws
  // InputError, also for a journal of something else and one that another process appends to.
  StudyJournal(const std::string& path, const JournalHeader& header, JournalStart start,
               const ChunkCheck& is_chunk = nullptr);
  // For reading, whatever the payloads are. Throws InputError when it is no journal, or damaged.
  explicit StudyJournal(const std::string& path);

  [[nodiscard]] const JournalHeader& header() const { return header_; }
  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] std::uint64_t num_chunks() const { return records_.size(); }
  [[nodiscard]] bool is_complete() const { return num_chunks() == header_.end - header_.begin; }
  // Bytes behind the damage that salvage dropped; 0 where nothing was damaged.
  [[nodiscard]] std::uint64_t num_dropped_bytes() const { return dropped_; }

  // The payload of chunk header().begin + index. Precondition: index < num_chunks().
  [[nodiscard]] std::string read(std::uint64_t index) const;
  // The next chunk. It is with the operating system when this returns: killing the program does not lose it. It is also
  // on the disk, with all before it, when the last sync was a second ago or more, as it is after a chunk that took that
  // long. Otherwise it is on the disk after the first append that comes a second or more after that sync, or after
  // sync(); however long the next chunk takes, a loss of power before that costs the chunks appended in that second.
  void append(const std::string& payload);
  void sync() { file_.sync(); }  // all chunks to the disk

 private:
  [[nodiscard]] bool rewrite_header(const JournalHeader& header);  // false where the file may be another study's
  [[nodiscard]] bool load_header();                                // false where there is no whole one
  void load_chunks(JournalStart start, const ChunkCheck& is_chunk);
  void begin(const JournalHeader& header, JournalStart start);

  JournalFile file_;
  std::uint64_t size_ = 0;  // of what is sound
  std::uint64_t dropped_ = 0;
  JournalHeader header_;
  std::vector<JournalRecord> records_;
};

}  // namespace dculab::config
