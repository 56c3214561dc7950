#include "cli/progress.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "fields/printable_text.hpp"

namespace dculab::cli {
namespace {

constexpr int kBarColumns = 30;
constexpr std::string_view kEmptyLine = "\r\033[K";
constexpr std::chrono::milliseconds kRedrawInterval{100};

// A terminal that is stopped (Ctrl-S) takes nothing: the end of the program does not wait for it.
void empty_line_if_taken() {
  pollfd terminal{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&terminal, 1, 0) == 1 && (terminal.revents & POLLOUT) != 0)
    (void)!::write(STDERR_FILENO, kEmptyLine.data(), kEmptyLine.size());  // the bar may hold stdio's lock
}

}  // namespace

ProgressBar::ProgressBar() : start_(std::chrono::steady_clock::now()) {
  if (::isatty(STDERR_FILENO) != 1) return;
  const auto clean_up = [this] {
    if (is_drawn_) empty_line_if_taken();
  };
  on_terminal_.emplace(clean_up, files::UndoOrder::after_others);
}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::update(const std::string& label, double share) {
  const auto now = std::chrono::steady_clock::now();
  if (share < share_) start_ = now;  // the next of several runs
  share_ = share;
  if (!on_terminal_ || (is_drawn_ && now - last_drawn_ < kRedrawInterval)) return;
  last_drawn_ = now;
  is_drawn_ = true;
  share = std::clamp(share, 0.0, 1.0);
  const int filled = static_cast<int>(share * kBarColumns);
  std::string bar(kEmptyLine);
  for (int column = 0; column < kBarColumns; ++column) bar += column < filled ? "█" : "·";
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double remaining = share > 0.02 ? elapsed / share - elapsed : 0;
  std::fprintf(stderr, "%s %3.0f %%  %s", bar.c_str(), 100 * share, printable(label).c_str());
  if (remaining > 1) std::fprintf(stderr, "  (%.0f s left)", remaining);
  std::fflush(stderr);
}

void ProgressBar::clear() {
  if (is_drawn_) std::fputs(kEmptyLine.data(), stderr);
  is_drawn_ = false;
}

}  // namespace dculab::cli
