#include "kernels/cpu/probe/dependent_chain.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace dculab::kernels::cpu {
namespace {

using Pointer = const std::byte*;

Pointer load_pointer(const std::byte* from) {
  Pointer pointer;
  std::memcpy(&pointer, from, sizeof pointer);
  return pointer;
}

void store_pointer(std::byte* to, Pointer pointer) { std::memcpy(to, &pointer, sizeof pointer); }

constexpr int kUnroll = 16;

// Sattolo's algorithm: a random permutation that is a single cycle.
void link_window(std::byte* data, std::size_t bytes, std::size_t stride, std::mt19937_64& random) {
  const std::size_t count = bytes / stride;
  for (std::size_t i = 0; i < count; ++i) store_pointer(data + i * stride, data + i * stride);
  for (std::size_t i = count; i-- > 1;) {
    std::byte* here = data + i * stride;
    std::byte* there = data + (random() % i) * stride;
    const Pointer pointer = load_pointer(here);
    store_pointer(here, load_pointer(there));
    store_pointer(there, pointer);
  }
}

}  // namespace

// The cycle of each window is cut after its first slot and tied to the next window's.
void link_random_cycle(std::byte* data, std::size_t bytes, std::size_t stride, std::size_t window) {
  std::mt19937_64 random(1);
  std::vector<std::byte*> windows;
  for (std::size_t i = 0; i < bytes / window; ++i) windows.push_back(data + i * window);
  for (std::byte* first : windows) link_window(first, window, stride, random);
  std::shuffle(windows.begin(), windows.end(), random);
  const Pointer entry = load_pointer(windows.front());
  for (std::size_t i = 0; i + 1 < windows.size(); ++i) store_pointer(windows[i], load_pointer(windows[i + 1]));
  store_pointer(windows.back(), entry);
}

const std::byte* follow_pointers(const std::byte* start, std::int64_t steps) {
  for (std::int64_t step = 0; step < steps; step += kUnroll) {
    for (int i = 0; i < kUnroll; ++i) start = load_pointer(start);
  }
  return start;
}

std::uint64_t add_dependent(std::int64_t steps) {
  std::uint64_t sum = 0, term = 1;
  asm volatile("" : "+r"(term));
  for (std::int64_t step = 0; step < steps; step += kUnroll) {
    for (int i = 0; i < kUnroll; ++i) {
      sum += term;
      asm volatile("" : "+r"(sum));  // keeps the additions apart; an immediate operand could be folded by the core
    }
  }
  return sum;
}

}  // namespace dculab::kernels::cpu
