#include "engine/checkpoint/quantized_tensors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "core/error.hpp"
#include "engine/checkpoint/packed_integers.hpp"
#include "fields/printable_text.hpp"
#include "kernels/number_format.hpp"

namespace dculab::engine {
namespace {

using kernels::QuantizedMatrix;
using Shape = std::vector<std::int64_t>;

// Which value of eight lies in which nibble. Source: AutoAWQ, awq/modules/linear/gemm.py.
constexpr std::array<int, 8> kAwqOrder{0, 2, 4, 6, 1, 3, 5, 7};

// Reads the tensors of one module, aligned; every complaint names file and tensor.
class ModuleReader {
 public:
  ModuleReader(const Checkpoint& checkpoint, const std::string& module) : checkpoint_(checkpoint), module_(module) {}

  template <typename T>
  [[nodiscard]] std::vector<T> read(const char* name, const char* dtype, const Shape& shape) const {
    const auto [tensor, file] = checkpoint_.find(module_ + name);
    if (tensor == nullptr) throw InputError(file, "tensor '" + module_ + name + "' is missing; the model is quantized");
    if (tensor->dtype != dtype)
      refuse(name, "has dtype " + shortened(tensor->dtype) + ", but a quantized matrix needs " + dtype);
    if (tensor->shape != shape)
      refuse(name,
             "has shape " + to_string(tensor->shape) + ", but its matrix and its settings make it " + to_string(shape));
    std::vector<T> values(tensor->bytes.size() / sizeof(T));
    std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
    return values;
  }

  // Some tools keep the scales in BF16; the kernels hold them in F16, which must change nothing.
  [[nodiscard]] std::vector<float> read_scales(const Shape& shape) const {
    const auto [tensor, file] = checkpoint_.find(module_ + ".scales");
    const bool is_bf16 = tensor != nullptr && tensor->dtype == "BF16";
    const auto stored = read<std::uint16_t>(".scales", is_bf16 ? "BF16" : "F16", shape);
    std::vector<float> scales(stored.size());
    std::ranges::transform(stored, scales.begin(), is_bf16 ? kernels::f32_from_bf16 : kernels::f32_from_f16);
    for (const float scale : scales) {
      if (!std::isfinite(scale)) refuse(".scales", "holds a scale that is not finite; the checkpoint is damaged");
      if (kernels::f32_from_f16(kernels::f16_from_f32(scale)) != scale)
        refuse(".scales", "holds scales in BF16 that F16 cannot hold; convert them");
    }
    return scales;
  }

  [[nodiscard]] bool has(const char* name) const { return checkpoint_.find(module_ + name).tensor != nullptr; }

  [[noreturn]] void refuse(const char* name, const std::string& what) const {
    const std::string file = checkpoint_.find(module_ + name).file;
    throw InputError(file, "tensor '" + module_ + name + "' " + what);
  }

 private:
  const Checkpoint& checkpoint_;
  const std::string& module_;
};

[[nodiscard]] std::size_t size(int count) { return static_cast<std::size_t>(count); }

void require_packable(const ModuleReader& reader, const ModuleShape& module, const QuantizationConfig& config) {
  const int group_size = config.group_size == -1 ? module.columns : config.group_size;
  if (module.columns % group_size != 0)
    reader.refuse(".qweight", "has " + std::to_string(module.columns) + " in-features, which groups of " +
                                  std::to_string(group_size) + " do not divide");
  const int multiple = packing_multiple(config.bits);
  const bool packs_columns = config.format != QuantizedFormat::awq;
  if (module.rows % multiple != 0 || (packs_columns && module.columns % multiple != 0))
    reader.refuse(".qweight", "is of a [" + std::to_string(module.rows) + ", " + std::to_string(module.columns) +
                                  "] matrix, whose sizes are not multiples of " + std::to_string(multiple));
}

[[nodiscard]] QuantizedMatrix make_matrix(const ModuleReader& reader, const ModuleShape& module,
                                          const QuantizationConfig& config) {
  require_packable(reader, module, config);
  QuantizedMatrix matrix;
  matrix.rows = module.rows;
  matrix.columns = module.columns;
  matrix.bits = config.bits;
  matrix.group_size = config.group_size == -1 ? module.columns : config.group_size;
  matrix.q.resize(size(matrix.rows) * size(matrix.columns));
  matrix.zeros.resize(size(matrix.rows) * size(matrix.groups()));
  return matrix;
}

// Scales lie in the file as [groups, rows].
void read_scales(const ModuleReader& reader, QuantizedMatrix& matrix) {
  const auto stored = reader.read_scales({matrix.groups(), matrix.rows});
  matrix.scales.resize(stored.size());
  for (std::size_t group = 0; group < size(matrix.groups()); ++group)
    for (std::size_t row = 0; row < size(matrix.rows); ++row)
      matrix.scales[row * size(matrix.groups()) + group] = stored[group * size(matrix.rows) + row];
}

void read_group_indices(const ModuleReader& reader, QuantizedMatrix& matrix) {
  if (!reader.has(".g_idx")) return;
  matrix.g_idx = reader.read<std::int32_t>(".g_idx", "I32", {matrix.columns});
  std::vector<int> members(size(matrix.groups()));
  for (const std::int32_t group : matrix.g_idx) {
    if (group < 0 || group >= matrix.groups())
      reader.refuse(".g_idx", "names group " + std::to_string(group) + ", but there are " +
                                  std::to_string(matrix.groups()) + "; the checkpoint is damaged");
    ++members[size(group)];
  }
  const auto odd = std::ranges::find_if(members, [&](int count) { return count != matrix.group_size; });
  if (odd != members.end())
    reader.refuse(".g_idx", "gives group " + std::to_string(odd - members.begin()) + " " + std::to_string(*odd) +
                                " in-features instead of " + std::to_string(matrix.group_size));
  if (std::ranges::is_sorted(matrix.g_idx)) matrix.g_idx.clear();
}

[[nodiscard]] QuantizedMatrix read_gptq(const ModuleReader& reader, const ModuleShape& module,
                                        const QuantizationConfig& config) {
  QuantizedMatrix matrix = make_matrix(reader, module, config);
  const std::int64_t rows = matrix.rows, columns = matrix.columns, bits = matrix.bits;
  const auto words = reader.read<std::uint32_t>(".qweight", "I32", {columns * bits / kWordBits, rows});
  const auto zero_words = reader.read<std::uint32_t>(".qzeros", "I32", {matrix.groups(), rows * bits / kWordBits});
  for (std::size_t row = 0; row < size(matrix.rows); ++row)
    for (std::size_t column = 0; column < size(matrix.columns); ++column)
      matrix.q[row * size(matrix.columns) + column] =
          read_packed(words.data() + row, size(matrix.rows), column, matrix.bits);
  // A stored 2^bits - 1 of the first format stands for 0, as in AutoGPTQ's own kernel.
  const unsigned offset = config.format == QuantizedFormat::gptq ? 1 : 0;
  const unsigned mask = (1U << matrix.bits) - 1;
  const std::size_t zero_row = zero_words.size() / size(matrix.groups());
  for (std::size_t row = 0; row < size(matrix.rows); ++row)
    for (std::size_t group = 0; group < size(matrix.groups()); ++group)
      matrix.zeros[row * size(matrix.groups()) + group] = static_cast<std::uint8_t>(
          (read_packed(zero_words.data() + group * zero_row, 1, row, matrix.bits) + offset) & mask);
  read_scales(reader, matrix);
  read_group_indices(reader, matrix);
  return matrix;
}

// Value `column` of a row of AWQ's words.
[[nodiscard]] std::uint8_t read_awq_value(const std::uint32_t* words, std::size_t column) {
  const auto nibble = std::ranges::find(kAwqOrder, static_cast<int>(column % 8)) - kAwqOrder.begin();
  return static_cast<std::uint8_t>(words[column / 8] >> (4 * nibble) & 0xFU);
}

[[nodiscard]] QuantizedMatrix read_awq(const ModuleReader& reader, const ModuleShape& module,
                                       const QuantizationConfig& config) {
  QuantizedMatrix matrix = make_matrix(reader, module, config);
  const std::int64_t words_per_row = matrix.rows / 8;
  const auto words = reader.read<std::uint32_t>(".qweight", "I32", {matrix.columns, words_per_row});
  const auto zero_words = reader.read<std::uint32_t>(".qzeros", "I32", {matrix.groups(), words_per_row});
  const auto stride = static_cast<std::size_t>(words_per_row);
  for (std::size_t column = 0; column < size(matrix.columns); ++column)
    for (std::size_t row = 0; row < size(matrix.rows); ++row)
      matrix.q[row * size(matrix.columns) + column] = read_awq_value(words.data() + column * stride, row);
  for (std::size_t group = 0; group < size(matrix.groups()); ++group)
    for (std::size_t row = 0; row < size(matrix.rows); ++row)
      matrix.zeros[row * size(matrix.groups()) + group] = read_awq_value(zero_words.data() + group * stride, row);
  read_scales(reader, matrix);
  return matrix;
}

}  // namespace

void require_packable(const Checkpoint& checkpoint, const ModuleShape& module, const QuantizationConfig& config) {
  require_packable(ModuleReader(checkpoint, module.name), module, config);
}

kernels::QuantizedMatrix read_quantized_matrix(const Checkpoint& checkpoint, const ModuleShape& module,
                                               const QuantizationConfig& config) {
  const ModuleReader reader(checkpoint, module.name);
  return config.format == QuantizedFormat::awq ? read_awq(reader, module, config) : read_gptq(reader, module, config);
}

GptqTensors to_gptq_tensors(const kernels::QuantizedMatrix& matrix, QuantizedFormat format) {
  const std::size_t rows = size(matrix.rows), columns = size(matrix.columns), groups = size(matrix.groups());
  const auto bits = size(matrix.bits);
  const int multiple = packing_multiple(matrix.bits);
  if (matrix.rows % multiple != 0 || matrix.columns % multiple != 0)
    throw InputError("a [" + std::to_string(rows) + ", " + std::to_string(columns) + "] matrix of " +
                     std::to_string(bits) + " bits does not fill whole words; its sizes must be multiples of " +
                     std::to_string(multiple));
  GptqTensors tensors;
  tensors.qweight.resize(columns * bits / kWordBits * rows);
  tensors.qzeros.resize(groups * (rows * bits / kWordBits));
  tensors.scales.resize(groups * rows);
  const int offset = format == QuantizedFormat::gptq ? 1 : 0;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column)
      write_packed(tensors.qweight.data() + row, rows, column, matrix.bits, matrix.q[row * columns + column]);
    for (std::size_t group = 0; group < groups; ++group) {
      const int zero = matrix.zeros[row * groups + group] - offset;
      if (zero < 0) throw std::invalid_argument("to_gptq_tensors: the first format has no zero point 0");
      write_packed(tensors.qzeros.data() + group * (rows * bits / kWordBits), 1, row, matrix.bits,
                   static_cast<std::uint8_t>(zero));
      tensors.scales[group * rows + row] = kernels::f16_from_f32(matrix.scales[row * groups + group]);
    }
  }
  for (int column = 0; column < matrix.columns; ++column) tensors.g_idx.push_back(matrix.group(column));
  return tensors;
}

}  // namespace dculab::engine
