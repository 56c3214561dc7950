#include "kernels/gpu/host/address_recorder.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace dculab::kernels::gpu::host {
namespace {

constexpr std::uint64_t kPage = 4096;

}  // namespace

void AddressRecorder::add_buffer(const void* data, std::size_t bytes, OperandRole role) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  Buffer buffer{begin, {role, next_address_, bytes}};
  next_address_ += (bytes + kPage - 1) / kPage * kPage;
  const auto place = std::upper_bound(buffers_.begin(), buffers_.end(), begin,
                                      [](std::uintptr_t value, const Buffer& other) { return value < other.begin; });
  buffers_.insert(place, buffer);
}

void AddressRecorder::remove_buffer(const void* data) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  std::erase_if(buffers_, [begin](const Buffer& buffer) { return buffer.begin == begin; });
}

void AddressRecorder::begin_launch(int workgroups, int waves_per_workgroup, int wave_size) {
  workgroups_ = workgroups;
  waves_per_workgroup_ = waves_per_workgroup;
  wave_size_ = wave_size;
  waves_.assign(static_cast<std::size_t>(workgroups) * static_cast<std::size_t>(waves_per_workgroup), {});
  open_wave_ = -1;
  epoch_size_ = 0;
}

std::uint64_t AddressRecorder::traced_address(std::uintptr_t address, std::uint32_t bytes) const {
  const auto after = std::upper_bound(buffers_.begin(), buffers_.end(), address,
                                      [](std::uintptr_t value, const Buffer& other) { return value < other.begin; });
  if (after == buffers_.begin()) throw std::out_of_range("kernel touches memory before every buffer it was given");
  const Buffer& buffer = *std::prev(after);
  const std::uint64_t offset = address - buffer.begin;
  if (offset + bytes > buffer.traced.bytes)
    throw std::out_of_range("kernel touches " + std::to_string(bytes) + " bytes at offset " + std::to_string(offset) +
                            " of a buffer of " + std::to_string(buffer.traced.bytes));
  return buffer.traced.address + offset;
}

AddressRecorder::Instruction& AddressRecorder::instruction_at(const void* site, std::uint32_t occurrence,
                                                              AccessKind kind) {
  // Lanes mostly follow the lane before them, instruction by instruction.
  for (std::size_t i = 0; i < epoch_size_; ++i) {
    const std::size_t place = (hint_ + i) % epoch_size_;
    Instruction& found = epoch_[place];
    if (found.site == site && found.occurrence == occurrence && found.kind == kind) {
      hint_ = place + 1;
      return found;
    }
  }
  if (epoch_size_ == epoch_.size()) epoch_.emplace_back();
  Instruction& added = epoch_[epoch_size_++];
  added.site = site;
  added.occurrence = occurrence;
  added.kind = kind;
  added.lanes.clear();
  hint_ = epoch_size_;
  return added;
}

void AddressRecorder::record(int wave_of_launch, int lane, const void* site, const void* address, std::uint32_t bytes,
                             AccessKind kind) {
  if (wave_of_launch != open_wave_) {
    end_epoch(open_wave_);
    open_wave_ = wave_of_launch;
    lane_ = -1;
  }
  if (lane != lane_) {
    lane_ = lane;
    visits_.clear();
    hint_ = 0;
  }
  auto visit = std::find_if(visits_.begin(), visits_.end(), [&](const Visit& v) { return v.site == site; });
  if (visit == visits_.end()) visit = visits_.insert(visits_.end(), Visit{site, 0});
  Instruction& instruction = instruction_at(site, visit->count++, kind);
  instruction.lanes.push_back({traced_address(reinterpret_cast<std::uintptr_t>(address), bytes), bytes});
}

void AddressRecorder::merge(Instruction& instruction, Wave& wave) {
  auto& lanes = instruction.lanes;
  const auto by_address = [](const LaneAccess& a, const LaneAccess& b) { return a.address < b.address; };
  if (!std::is_sorted(lanes.begin(), lanes.end(), by_address)) std::sort(lanes.begin(), lanes.end(), by_address);
  WaveAccess range;
  for (const LaneAccess& lane : lanes) {
    const bool continues = range.lane_bytes != 0 && lane.address <= range.address + range.bytes;
    if (!continues) {
      if (range.lane_bytes != 0) wave.accesses.push_back(range);
      range = {lane.address, 0, 0, wave.next_instruction, instruction.kind};
    }
    const std::uint64_t end = std::max(range.address + range.bytes, lane.address + lane.bytes);
    range.bytes = static_cast<std::uint32_t>(end - range.address);
    range.lane_bytes += lane.bytes;
  }
  if (range.lane_bytes != 0) wave.accesses.push_back(range);
  ++wave.next_instruction;
}

void AddressRecorder::end_epoch(int wave_of_launch) {
  if (wave_of_launch < 0 || wave_of_launch != open_wave_) return;
  Wave& wave = waves_[static_cast<std::size_t>(wave_of_launch)];
  for (std::size_t i = 0; i < epoch_size_; ++i) merge(epoch_[i], wave);
  epoch_size_ = 0;
  hint_ = 0;
  lane_ = -1;
  open_wave_ = -1;
}

void AddressRecorder::end_launch() {
  end_epoch(open_wave_);
  AddressTrace& trace = launches_.emplace_back();
  trace.kernel = std::exchange(kernel_, {});
  trace.wave_size = wave_size_;
  trace.waves_per_workgroup = waves_per_workgroup_;
  trace.workgroups = workgroups_;
  for (const Buffer& buffer : buffers_) trace.buffers.push_back(buffer.traced);
  std::sort(trace.buffers.begin(), trace.buffers.end(),
            [](const TracedBuffer& a, const TracedBuffer& b) { return a.address < b.address; });
  for (Wave& wave : waves_) {
    trace.wave_begin.push_back(trace.accesses.size());
    trace.accesses.insert(trace.accesses.end(), wave.accesses.begin(), wave.accesses.end());
    wave = {};
  }
  trace.wave_begin.push_back(trace.accesses.size());
}

AddressTrace AddressRecorder::take(std::string kernel) {
  if (launches_.empty()) throw std::logic_error("nothing has been recorded");
  AddressTrace last = std::move(launches_.back());
  launches_.clear();
  last.kernel = std::move(kernel);
  return last;
}

std::vector<AddressTrace> AddressRecorder::take_launches() { return std::exchange(launches_, {}); }

}  // namespace dculab::kernels::gpu::host
