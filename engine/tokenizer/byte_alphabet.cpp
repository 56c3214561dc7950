#include "engine/tokenizer/byte_alphabet.hpp"

#include <array>
#include <charconv>

#include "fields/utf8.hpp"

namespace dculab::engine {
namespace {

constexpr char32_t kFirstStandIn = 0x100;
constexpr std::size_t kStandIns = 68;  // bytes that are not printable Latin-1
constexpr int kNoByte = -1;

struct Alphabet {
  std::array<char32_t, 256> character_of{};
  std::array<int, kFirstStandIn + kStandIns> byte_of{};
};

constexpr bool is_printable(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.byte_of.fill(kNoByte);
  char32_t stand_in = kFirstStandIn;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char32_t character = is_printable(byte) ? byte : stand_in++;
    alphabet.character_of[byte] = character;
    alphabet.byte_of[character] = static_cast<int>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::string to_byte_alphabet(std::string_view bytes) {
  std::string token;
  token.reserve(bytes.size() * 2);
  for (const char byte : bytes) append_character(token, kAlphabet.character_of[static_cast<unsigned char>(byte)]);
  return token;
}

std::string from_byte_alphabet(std::string_view token) {
  std::string bytes;
  bytes.reserve(token.size());
  for (std::string_view rest = token; !rest.empty();) {
    const Utf8Unit unit = first_unit(rest);
    const bool known = unit.kind == Utf8Kind::character && unit.code_point < kAlphabet.byte_of.size();
    const int byte = known ? kAlphabet.byte_of[unit.code_point] : kNoByte;
    if (byte == kNoByte) return std::string(token);
    bytes.push_back(static_cast<char>(static_cast<unsigned char>(byte)));
    rest.remove_prefix(unit.size);
  }
  return bytes;
}

std::string byte_fallback_token(unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return std::string("<0x") + kDigits[byte >> 4U] + kDigits[byte & 0xFU] + ">";
}

// Rust's u8::from_str_radix, which the tokenizers library reads them with, also takes lower case and "+A".
std::optional<unsigned char> fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  std::string_view digits = token.substr(3, 2);
  if (digits.front() == '+') digits.remove_prefix(1);
  unsigned char byte = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, byte, 16);
  if (error != std::errc() || stop != end) return std::nullopt;
  return byte;
}

}  // namespace dculab::engine
