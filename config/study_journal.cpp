#include "config/study_journal.hpp"

#include <fcntl.h>

#include <algorithm>
#include <sstream>
#include <string_view>

#include "config/little_endian.hpp"
#include "core/error.hpp"

namespace dculab::config {
namespace {

constexpr std::string_view kFormat = "dculab study journal 2\n";
constexpr std::string_view kOlderFormat = "dculab study journal 1\n";

[[nodiscard]] std::string to_text(const JournalHeader& header) {
  std::ostringstream text;
  text << header.identity << ' ' << header.begin << ' ' << header.end << ' ' << header.shard << ' ' << header.shards
       << '\n'
       << header.document;
  return text.str();
}

[[nodiscard]] bool parse(const std::string& text, JournalHeader& header) {
  std::istringstream stream(text);
  stream >> header.identity >> header.begin >> header.end >> header.shard >> header.shards;
  return stream.get() == '\n' && static_cast<bool>(std::getline(stream, header.document)) &&
         header.begin <= header.end && header.shard >= 1 && header.shard <= header.shards;
}

// Whether `bytes` may be what a stopped program left of `whole`: its beginning, and zeros where the disk had not got
// it.
[[nodiscard]] bool is_torn(std::string_view bytes, std::string_view whole) {
  if (bytes.size() > whole.size()) return false;
  return std::ranges::equal(bytes, whole.substr(0, bytes.size()),
                            [](char there, char written) { return there == '\0' || there == written; });
}

}  // namespace

StudyJournal::StudyJournal(const std::string& path, const JournalHeader& header, JournalStart start,
                           const ChunkCheck& is_chunk)
    : file_(path, O_RDWR | O_CREAT | (start == JournalStart::create ? O_EXCL : 0)) {
  file_.lock();
  if (!load_header() && !(start == JournalStart::salvage && rewrite_header(header)))
    begin(header, start);
  else if (!header_.fits(header))
    file_.refuse(header_.identity == header.identity
                     ? "is of another shard"
                     : "is of another scenario, machine, stack, model or build of dculab; remove it to begin anew");
  else
    load_chunks(start, is_chunk);
  file_.cut(size_);
}

StudyJournal::StudyJournal(const std::string& path) : file_(path, O_RDONLY) {
  if (!load_header())
    file_.refuse(kFormat.starts_with(file_.read(0, kFormat.size()))
                     ? "has no study in it yet; go on with it: study --journal --resume"
                     : "is no journal of a study");
  load_chunks(JournalStart::resume, nullptr);
}

void StudyJournal::begin(const JournalHeader& header, JournalStart start) {
  const std::string whole = std::string(kFormat) + record_bytes(kFormat.size(), to_text(header));
  const std::string there = file_.read(0, whole.size() + 1);
  const bool is_one = there.starts_with(kFormat);
  const std::string damaged =
      std::string("is damaged before its first chunk") +
      (start == JournalStart::salvage ? ", where it tells which study it is of; remove it to begin anew"
                                      : "; study --salvage goes on with it where it still tells which study it is of");
  if (!is_torn(there, whole)) file_.refuse(is_one ? damaged : "is no journal of a study");
  // Zeros where a journal begins may be anything else, and must be said to be one.
  if (!is_one && !whole.starts_with(there) && start != JournalStart::salvage)
    file_.refuse("begins with zeros; if it is one, --salvage begins it anew");
  file_.cut(0);
  file_.write(0, whole);
  file_.sync();
  file_.sync_new();
  size_ = whole.size();
  header_ = header;
}

// Its first line, identity and shard, tells whose chunks stand behind a damaged header.
bool StudyJournal::rewrite_header(const JournalHeader& header) {
  const std::string text = to_text(header);
  const std::string whole = std::string(kFormat) + record_bytes(kFormat.size(), text);
  const std::string there = file_.read(0, whole.size() + 1);
  const std::string_view line = std::string_view(text).substr(0, text.size() - header.document.size());
  const std::size_t place = whole.find(text);
  if (there.size() <= whole.size() || std::string_view(there).substr(place, line.size()) != line) return false;
  file_.write(0, whole);
  size_ = whole.size();
  header_ = header;
  return true;
}

bool StudyJournal::load_header() {
  const std::string format = file_.read(0, kFormat.size());
  if (format == kOlderFormat)
    file_.refuse("is of an older dculab; finish it with that one, or remove it to begin anew");
  std::string payload;
  if (format != kFormat) return false;
  const auto head = file_.record_at(kFormat.size(), payload);
  if (!head) return false;
  if (!parse(payload, header_)) file_.refuse("has a header that cannot be read; remove it to begin anew");
  size_ = head->end();
  return true;
}

void StudyJournal::load_chunks(JournalStart start, const ChunkCheck& is_chunk) {
  std::string payload;
  bool is_wrong = false;  // what a program that was stopped leaves has no right checksum
  while (!is_complete()) {
    const auto record = file_.record_at(size_, payload);
    is_wrong = record && is_chunk && !is_chunk(header_.begin + num_chunks(), payload);
    if (!record || is_wrong) break;
    records_.push_back(*record);
    size_ = record->end();
  }
  if (is_complete() || (!is_wrong && !file_.has_record_behind(size_))) return;
  if (start != JournalStart::salvage)
    file_.refuse("is damaged at byte " + std::to_string(size_) + ", behind " + std::to_string(num_chunks()) +
                 (num_chunks() == 1 ? " whole chunk" : " whole chunks") +
                 "; study --salvage keeps those and predicts the rest again");
  dropped_ = file_.size() - size_;
}

std::string StudyJournal::read(std::uint64_t index) const {
  const JournalRecord& record = records_[index];
  std::string payload = file_.read(record.begin, record.size);
  if (payload.size() < record.size) file_.refuse("ends before a chunk that was there");
  return payload;
}

void StudyJournal::append(const std::string& payload) {
  const std::string bytes = record_bytes(size_, payload);
  const std::uint64_t end = size_ + bytes.size();
  file_.write(size_, bytes);
  records_.push_back({end - payload.size() - kWordBytes, payload.size()});
  size_ = end;
}

}  // namespace dculab::config
