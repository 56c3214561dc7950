#include "cli/program_errors.hpp"

#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <initializer_list>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "core/error.hpp"
#include "fields/printable_text.hpp"
#include "files/interruption.hpp"

namespace dculab::cli {
namespace {

constexpr std::size_t kReserve = std::size_t{64} << 10;

void say(std::initializer_list<std::string_view> parts) noexcept {
  std::array<iovec, 8> pieces{};
  std::size_t count = 0;
  const auto add = [&](std::string_view part) { pieces[count++] = {const_cast<char*>(part.data()), part.size()}; };
  add("dculab: ");
  for (const std::string_view part : parts) add(part);
  add("\n");
  [[maybe_unused]] const ssize_t nobody_to_tell = ::writev(STDERR_FILENO, pieces.data(), static_cast<int>(count));
}

// Without what could steer a terminal, where there is memory for that.
void say_text(std::string_view text) noexcept {
  try {
    say({printable(text)});
  } catch (const std::bad_alloc&) {
    say({text});
  }
}

void say_of_path(const std::filesystem::filesystem_error& error) noexcept {
  const std::string_view path = error.path1().native();
  const char* const reason = std::strerror(error.code().value());
  try {
    const std::string shown = path.empty() ? "the current folder" : printable(shortened(path));
    say({shown, ": cannot be used (", reason, ")"});
  } catch (const std::bad_alloc&) {
    say({"a path cannot be used (", reason, ")"});
  }
}

void say_of_system(const std::system_error& error) noexcept {
  const bool is_limit = error.code() == std::errc::resource_unavailable_try_again ||
                        error.code() == std::errc::not_enough_memory || error.code() == std::errc::too_many_files_open;
  say({"the system refused (", error.what(), is_limit ? "); ulimit -a shows its limits" : ")"});
}

void say_out_of_memory() noexcept {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), usage.ru_maxrss >> 10).ptr;
  say({"out of memory after ",
       {digits.data(), static_cast<std::size_t>(end - digits.data())},
       " MiB; ask for less, or raise the limit if there is one (ulimit -v)"});
}

// Memory for what follows a failed allocation: destructors of JSON take some, and may not throw.
[[gnu::init_priority(101)]] std::atomic<void*> reserve = std::malloc(kReserve);

void give_reserve() {
  void* const kept = reserve.exchange(nullptr);
  if (kept == nullptr) throw std::bad_alloc();
  std::free(kept);
}

// Ends the program where no handler sees the exception: one before main or from a destructor, or one that there was no
// memory to throw.
[[noreturn]] void end_program() noexcept {
  std::set_terminate([] { std::_Exit(kBadInput); });  // should one of these fail, too
  files::undo_unfinished();
  if (std::current_exception() != nullptr) std::_Exit(report_exception());
  if (void* const some = std::malloc(kReserve); some != nullptr) std::abort();
  say_out_of_memory();
  std::_Exit(kBadInput);
}

void prepare_for_failures() noexcept {
  std::set_new_handler(give_reserve);
  std::set_terminate(end_program);
}

// Comes before the constructors of shared libraries and of this program: Highway's and CLI11's take memory.
[[gnu::section(".preinit_array"), gnu::used]] void (*const prepare)() = prepare_for_failures;

}  // namespace

int report_exception() noexcept {
  try {
    throw;
  } catch (const std::filesystem::filesystem_error& error) {
    say_of_path(error);
  } catch (const std::system_error& error) {
    say_of_system(error);
  } catch (const std::bad_alloc&) {
    say_out_of_memory();
  } catch (const std::length_error&) {
    say_out_of_memory();  // more than there can be
  } catch (const InputError& error) {
    say_text(error.what());
  } catch (const std::exception& error) {
    say_text(error.what());
    return kFailed;
  } catch (...) {
    say({"failed for a reason it cannot name"});
    return kFailed;
  }
  return kBadInput;
}

}  // namespace dculab::cli
