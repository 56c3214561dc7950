#include "files/gzip.hpp"

#include <limits>

#include "core/error.hpp"

#ifdef __EMSCRIPTEN__

std::string dculab::files::unpacked(const std::string& file, std::string text, std::size_t) {
  if (text.starts_with("\x1f\x8b"))
    throw InputError(file, "is packed by gzip, which is not read here; unpack it first");
  return text;
}

#else

#include <zlib.h>

namespace dculab::files {
namespace {

constexpr int kGzip = 16 + MAX_WBITS;  // zlib: with a gzip header

class Inflater {
 public:
  Inflater() { is_open_ = inflateInit2(&stream_, kGzip) == Z_OK; }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  [[nodiscard]] bool is_open() const { return is_open_; }
  [[nodiscard]] z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
  bool is_open_ = false;
};

}  // namespace

std::string unpacked(const std::string& file, std::string text, std::size_t limit) {
  if (!text.starts_with("\x1f\x8b")) return text;
  constexpr std::size_t kPiece = std::size_t{1} << 20U;
  if (text.size() > std::numeric_limits<uInt>::max()) throw InputError(file, "is larger than 4 GiB; cut it first");
  Inflater inflater;
  if (!inflater.is_open()) throw InputError(file, "is packed, and there is no memory to unpack it");
  z_stream& stream = inflater.stream();
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  std::string result;
  for (int status = Z_OK; status != Z_STREAM_END || stream.avail_in > 0;) {
    if (status == Z_STREAM_END && *stream.next_in == 0) break;  // padding, as tapes have it
    if (status == Z_STREAM_END) inflateReset(&stream);          // a file may hold several members, one after the other
    const std::size_t before = result.size();
    result.resize(before + kPiece);
    stream.next_out = reinterpret_cast<Bytef*>(result.data() + before);
    stream.avail_out = static_cast<uInt>(kPiece);
    status = inflate(&stream, Z_NO_FLUSH);
    result.resize(result.size() - stream.avail_out);
    if (result.size() > limit)
      throw InputError(file, "holds more than " + std::to_string(limit) + " bytes unpacked; cut it first");
    if (status != Z_OK && status != Z_STREAM_END)
      throw InputError(file, "is a gzip file that is damaged or breaks off; copy it again");
  }
  return result;
}

}  // namespace dculab::files

#endif
