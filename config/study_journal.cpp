#include "config/study_journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <string_view>

#include "config/little_endian.hpp"
#include "core/error.hpp"
#include "core/fingerprint.hpp"

namespace dculab::config {
namespace {

constexpr std::string_view kFormat = "dculab study journal 1\n";
constexpr std::uint64_t kLargestRecord = 1 << 26;

using Word = std::array<char, kWordBytes>;

[[nodiscard]] std::uint64_t value_of(const Word& bytes) { return from_little_endian({bytes.data(), bytes.size()}); }

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

}  // namespace

StudyJournal::StudyJournal(const std::string& path, const JournalHeader& header, JournalStart start) : path_(path) {
  const int exclusive = start == JournalStart::create ? O_EXCL : 0;
  descriptor_.number = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | exclusive, 0666);
  if (descriptor_.number < 0 && errno == EEXIST)
    refuse("is there already; add --resume to go on with it, or remove it to begin anew");
  if (descriptor_.number < 0) refuse(std::string("cannot be opened (") + std::strerror(errno) + ")");
  if (::flock(descriptor_.number, LOCK_EX | LOCK_NB) != 0)
    refuse(errno == EWOULDBLOCK
               ? "is being written by another study"
               : std::string("cannot be locked (") + std::strerror(errno) + "); keep it on a file system with locks");
  if (::lseek(descriptor_.number, 0, SEEK_END) > 0) load();
  if (size_ > 0 && !header_.fits(header))
    refuse(header_.identity == header.identity
               ? "is of another shard"
               : "is of another scenario, machine, model or build of dculab; remove it to begin anew");
  if (::ftruncate(descriptor_.number, static_cast<off_t>(size_)) != 0) refuse("cannot be written");
  if (size_ > 0) return;
  header_ = header;
  write(to_text(header));
}

StudyJournal::StudyJournal(const std::string& path) : path_(path) {
  descriptor_.number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_.number < 0) refuse(std::string("cannot be opened (") + std::strerror(errno) + ")");
  load();
  if (size_ == 0) refuse("has no study in it yet; go on with it: study --journal --resume");
}

StudyJournal::Descriptor::~Descriptor() {
  if (number >= 0) ::close(number);
}

void StudyJournal::refuse(const std::string& why) const { throw InputError(path_, "this journal " + why); }

void StudyJournal::refuse_damaged() const {
  refuse("is damaged at byte " + std::to_string(size_) + ", after " + std::to_string(records_.size()) +
         (records_.size() == 1 ? " whole chunk" : " whole chunks") + "; restore it, or remove it to begin anew");
}

// False at the end of the file. An error is none: what could not be read may be whole, and must not be written over.
bool StudyJournal::read_all(char* target, std::size_t size, std::uint64_t begin) const {
  while (size > 0) {
    const ssize_t got = ::pread(descriptor_.number, target, size, static_cast<off_t>(begin));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(std::string("cannot be read (") + std::strerror(errno) + ")");
    if (got == 0) return false;
    target += got;
    begin += static_cast<std::uint64_t>(got);
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

// Nothing of a file whose first record is torn: its study had not begun.
void StudyJournal::load() {
  std::string format(kFormat.size(), '\0');
  const bool whole = read_all(format.data(), format.size(), 0);
  if (!whole && std::string_view(kFormat).starts_with(format.c_str())) return;
  if (format != kFormat) throw InputError(path_, "is no journal of a study");
  size_ = kFormat.size();
  Record record;
  std::string payload;
  if (!load_record(record, payload)) {
    size_ = 0;
    return;
  }
  if (!parse(payload, header_)) refuse("has a header that cannot be read");
  while (records_.size() < header_.end - header_.begin && load_record(record, payload)) records_.push_back(record);
}

// False where the file ends before the record does: it was being written when the study was stopped.
bool StudyJournal::load_record(Record& record, std::string& payload) {
  Word length{}, checksum{};
  if (!read_all(length.data(), length.size(), size_)) return false;
  record = {size_ + length.size(), value_of(length)};
  if (record.size > kLargestRecord) refuse_damaged();
  payload.resize(record.size);
  if (!read_all(payload.data(), record.size, record.begin)) return false;
  if (!read_all(checksum.data(), checksum.size(), record.begin + record.size)) return false;
  if (value_of(checksum) != fingerprint(payload, record.begin)) refuse_damaged();
  size_ = record.begin + record.size + checksum.size();
  return true;
}

std::string StudyJournal::read(std::uint64_t index) const {
  const Record& record = records_[index];
  std::string payload(record.size, '\0');
  if (!read_all(payload.data(), payload.size(), record.begin)) refuse("ends before a chunk that was there");
  return payload;
}

void StudyJournal::append(const std::string& payload) {
  const Record record{size_ + kWordBytes, payload.size()};
  write(payload);
  records_.push_back(record);
}

void StudyJournal::write(const std::string& payload) {
  const std::string start = size_ == 0 ? std::string(kFormat) : "";
  const std::uint64_t begin = size_ + start.size() + kWordBytes;
  const std::string text =
      start + to_little_endian(payload.size()) + payload + to_little_endian(fingerprint(payload, begin));
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written =
        ::pwrite(descriptor_.number, text.data() + done, text.size() - done, static_cast<off_t>(size_ + done));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse(std::string("cannot be written (") + std::strerror(errno) + ")");
    done += static_cast<std::size_t>(written);
  }
  size_ += text.size();
}

}  // namespace dculab::config
