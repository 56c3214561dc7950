#include "engine/checkpoint/fp8_layers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <string>

#include "core/error.hpp"
#include "engine/checkpoint/packed_layers.hpp"
#include "engine/checkpoint/stored_values.hpp"
#include "fields/json_fields.hpp"
#include "fields/printable_text.hpp"
#include "model/folder/model_files.hpp"
#include "model/stored_weights.hpp"

namespace dculab::engine {
namespace {

using kernels::Fp8Scales;

[[nodiscard]] int blocks_of(int size, int shift) { return ((size - 1) >> shift) + 1; }

// How many rows and columns of a tensor share a scale.
struct BlockShifts {
  int rows = Fp8Scales::kAll, columns = Fp8Scales::kAll;

  [[nodiscard]] std::vector<std::int64_t> shape(const TensorSlot& slot) const {
    return {blocks_of(slot.tensor_rows(), rows), blocks_of(slot.columns, columns)};
  }
};

// Kernels take blocks of powers of two.
[[nodiscard]] BlockShifts read_blocks(const std::filesystem::path& folder) {
  constexpr unsigned kFewestColumns = 1U << Fp8Scales::kLeastColumnShift;
  const std::string file = (folder / "config.json").string();
  const auto stored = read_stored_weights(JsonFields(file, read_model_text(file)));
  if (!stored || stored->block_rows == 0) return {};
  const auto rows = static_cast<unsigned>(stored->block_rows), columns = static_cast<unsigned>(stored->block_columns);
  if (!std::has_single_bit(rows) || !std::has_single_bit(columns) || columns < kFewestColumns)
    throw InputError(file, "FP8 blocks of " + std::to_string(rows) + " x " + std::to_string(columns) +
                               " weights are predicted, not run; sizes must be powers of two, of at least 128 columns");
  return {std::countr_zero(rows), std::countr_zero(columns)};
}

void require_values(const Checkpoint& checkpoint, const TensorSlot& slot) {
  const auto [tensor, file] = checkpoint.find(slot.name);
  const auto refuse = [&, file = file](const std::string& what) {
    throw InputError(file, "tensor '" + slot.name + "' " + what);
  };
  if (tensor == nullptr) return refuse("is missing; config.json asks for it");
  if (tensor->dtype != "F8_E4M3")
    refuse("has dtype " + shortened(tensor->dtype) + ", but quantization_config makes it F8_E4M3");
  const std::vector<std::int64_t> expected{slot.tensor_rows(), slot.columns};
  if (tensor->shape != expected)
    refuse("has shape " + to_string(tensor->shape) + ", but config.json makes it " + to_string(expected));
  constexpr std::byte kMagnitude{0x7F};  // all of its bits: NaN
  if (std::ranges::any_of(tensor->bytes, [](std::byte each) { return (each & kMagnitude) == kMagnitude; }))
    refuse("has a weight that is NaN (the checkpoint is damaged); download it again");
}

struct ScaleTensor {
  std::string name, file;
  const StoredTensor* tensor;
};

[[nodiscard]] ScaleTensor find_scales(const Checkpoint& checkpoint, const TensorSlot& slot) {
  for (const char* suffix : {".weight_scale_inv", ".weight_scale"}) {
    const std::string name = module_name(slot) + suffix;
    if (const auto [tensor, file] = checkpoint.find(name); tensor != nullptr) return {name, file, tensor};
  }
  throw InputError(checkpoint.find(slot.name).file, "tensor '" + module_name(slot) +
                                                        ".weight_scale_inv' is missing (nor is there a weight_scale); "
                                                        "FP8 weights need scales");
}

// As kernels take them.
[[nodiscard]] std::vector<float> read_scales(const ScaleTensor& scales) {
  const auto dtype = parse_dtype(scales.tensor->dtype);
  if (!dtype || (*dtype != Dtype::f32 && *dtype != Dtype::bf16 && *dtype != Dtype::f16))
    throw InputError(scales.file, "tensor '" + scales.name + "' has dtype " + shortened(scales.tensor->dtype) +
                                      ", which is not supported (F32, BF16, F16)");
  std::vector<std::byte> aligned(scales.tensor->bytes.begin(), scales.tensor->bytes.end());
  std::vector<float> values(aligned.size() * 8 / static_cast<std::size_t>(bits(*dtype)));
  widen(aligned.data(), *dtype, values);
  for (float& value : values) value *= Fp8Scales::kFactor;
  if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); }))
    throw InputError(scales.file, "tensor '" + scales.name + "' has a scale that is NaN or infinite");
  return values;
}

// By the shape of the scales: of the blocks that config.json gives, of rows, or of the whole tensor.
[[nodiscard]] BlockShifts shifts_of(const ScaleTensor& scales, const TensorSlot& slot, BlockShifts blocks) {
  using Shape = std::vector<std::int64_t>;
  const Shape& shape = scales.tensor->shape;
  const std::int64_t rows = slot.tensor_rows();
  if (shape == blocks.shape(slot)) return blocks;
  if (shape.empty() || shape == Shape{1} || shape == Shape{1, 1}) return {};
  if (shape == Shape{rows} || shape == Shape{rows, 1}) return {0, Fp8Scales::kAll};
  throw InputError(scales.file, "tensor '" + scales.name + "' has shape " + to_string(shape) + "; " +
                                    to_string(blocks.shape(slot)) + ", one value, or one for each of " +
                                    std::to_string(rows) + " rows are supported");
}

// A slot that is a part of its tensor gets scales for each of its rows: its blocks need not begin where it does.
[[nodiscard]] std::vector<float> picked_rows_of(const std::vector<float>& scales, const TensorSlot& slot,
                                                const Fp8Scales& layout) {
  const auto width = static_cast<std::size_t>(layout.column_blocks);
  std::vector<float> picked;
  picked.reserve(static_cast<std::size_t>(slot.rows) * width);
  for (int row = 0; row < slot.rows; ++row) {
    const auto first = scales.begin() + std::ptrdiff_t{slot.tensor_row(row) >> layout.row_shift} * layout.column_blocks;
    picked.insert(picked.end(), first, first + layout.column_blocks);
  }
  return picked;
}

}  // namespace

bool has_fp8_layers(const ModelShape& shape) {
  return shape.quantization && shape.quantization->dtype == Dtype::fp8_e4m3;
}

void load_fp8_layers(const std::filesystem::path& folder, const Checkpoint& checkpoint,
                     const std::vector<TensorSlot>& slots, ModelWeights& weights) {
  const BlockShifts blocks = read_blocks(folder);
  auto kept = std::make_shared<std::vector<std::vector<float>>>();
  for (const TensorSlot& slot : slots) {
    require_values(checkpoint, slot);
    const ScaleTensor tensor = find_scales(checkpoint, slot);
    const BlockShifts shifts = shifts_of(tensor, slot, blocks);
    std::vector<float> scales = read_scales(tensor);
    Fp8Scales layout{nullptr, shifts.rows, shifts.columns, blocks_of(slot.columns, shifts.columns)};
    if (slot.is_part()) {
      scales = picked_rows_of(scales, slot, layout);
      layout.row_shift = 0;
    }
    layout.times_256 = kept->emplace_back(std::move(scales)).data();
    slot.view->data = checkpoint.find(slot.name).tensor->bytes.data();
    slot.view->dtype = Dtype::fp8_e4m3;
    slot.view->rows = slot.rows;
    slot.view->scales = layout;
  }
  weights.memory.push_back(std::move(kept));
}

}  // namespace dculab::engine
