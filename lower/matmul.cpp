#include "lower/matmul.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dculab::lower {
namespace {

constexpr double kSlab = 32;  // values of k that a workgroup stages at a time
constexpr Bytes kMatrixStep{32};
constexpr double kSmallestSplit = 256;  // values of k below which a GEMM library does not split

// Integer products: per weight of less than 8 bits an AND and a shift for 8 values of a 32-bit lane, twice; per
// activation the largest of its group, scale, round and pack; per sum of a group: to F32, zero point, scale.
constexpr double kUnpackInstructions = 0.5;
constexpr double kRoundInstructions = 4;
constexpr double kScaleInstructions = 3;

// Rows and columns of y over the number of tiles that they are cut into, rounded up: the mean tile.
struct Part {
  double rows = 1;
  double columns = 1;
};

[[nodiscard]] double cut(std::int64_t size, int tile) { return std::ceil(static_cast<double>(size) / tile); }

// Workgroups that compute a tile together, each on its own unit (on NVIDIA a cluster).
[[nodiscard]] double workgroups_per_tile(const Part& part, const Device& device) {
  if (device.kind == DeviceKind::cpu) return 1;
  const WaveResources& waves = device.waves;
  const Bytes registers =
      storage(Dtype::f32, static_cast<double>(waves.vgprs_per_lane) * waves.wave_size * waves.simds_per_unit);
  return std::max(1.0, std::ceil(storage(Dtype::f32, part.rows * part.columns) / (0.5 * registers)));
}

[[nodiscard]] KernelResources assumed_resources(const Op& op, Part part, double workgroups_per_tile, int threads) {
  part.rows /= workgroups_per_tile;
  KernelResources kernel;
  kernel.threads = threads;
  kernel.vgprs = registers(32 + part.rows * part.columns / kernel.threads);
  kernel.lds = storage(op.activation_dtype, 2 * (part.rows + part.columns) * kSlab);
  return kernel;
}

// 16 values of the tile in each thread, or more.
[[nodiscard]] int threads_of(const MatmulTile& tile, const Device& device) {
  constexpr int kValues = 16;
  const int most = KernelResources{}.threads;
  return std::clamp(tile.rows * tile.columns / kValues, std::min(device.waves.wave_size, most), most);
}

// Matrix cores take 16 values of F16 at a time along k, vector units one.
[[nodiscard]] Bytes step_of(const Op& op, const Device& device) {
  return device.has_matrix_cores ? kMatrixStep : storage(op.activation_dtype, 1);
}

void set_slabs(const Op& op, const Part& part, const Slabs& slabs, const Device& device, Launch& launch) {
  launch.slabs = std::ceil(storage(op.activation_dtype, static_cast<double>(op.k)) / slabs.depth);
  launch.slabs_ahead = slabs.ahead;
  launch.slab = (part.rows + part.columns) * slabs.depth;
  launch.slab_steps = slabs.depth / step_of(op, device);
}

void set_multiplied(const Multiplied& multiplied, Launch& launch) {
  Arithmetic& arithmetic = launch.arithmetic;
  arithmetic.multiply = multiplied.instructions * arithmetic.multiply;
  if (multiplied.in == arithmetic.multiplied_in) return;
  arithmetic.multiplied_in = arithmetic.stored = multiplied.in;
}

void set_arithmetic(const Op& op, double row_tiles, Arithmetic& arithmetic) {
  const double weights = static_cast<double>(op.n) * static_cast<double>(op.k) * row_tiles;
  arithmetic.pipe = Pipe::matmul;
  arithmetic.multiply = op.flops;
  arithmetic.rows = std::max(1.0, static_cast<double>(op.m));
  arithmetic.stored_values = weights;
  arithmetic.stored = op.weight_format.dtype;
  if (op.activations == ActivationMode::int8)
    arithmetic.integer_instructions = integer_instructions(op, static_cast<double>(op.m), weights);
}

void set_slices(const Op& op, const Slices& slices, Launch& launch) {
  Arithmetic& arithmetic = launch.arithmetic;
  launch.parts = std::ceil(static_cast<double>(op.k) / slices.depth);
  launch.adds_in_place = true;
  launch.resources = slices.resources;
  launch.knows_resources = true;
  launch.overlap = Overlap::partial;
  launch.draws_for_idle = false;
  launch.spills = {launch.grid.workgroups * launch.parts * slices.spills.moved, slices.spills.between};
  arithmetic.multiply = FlopCount();
  arithmetic.packed = FlopCount(slices.per_product * op.flops.value() / 2);
  arithmetic.stored = arithmetic.multiplied_in;
  arithmetic.shaping_per_value = slices.per_weight;
}

void set_vector_units(const VectorProduct& product, Launch& launch) {
  Arithmetic& arithmetic = launch.arithmetic;
  launch.overlap = Overlap::caches;
  arithmetic.has_matrix_instructions = false;
  if (product.issued <= 0) return;
  arithmetic.multiply = FlopCount();
  arithmetic.stored_values = arithmetic.integer_instructions = 0;
  arithmetic.issued = FlopCount(product.issued);
  arithmetic.waves_to_fill = product.waves_to_fill;
  launch.grid.workgroups = launch.grid.most_workgroups = product.workgroups;
  launch.loads_before = product.loads_before;
  if (product.wave_by_wave) launch.overlap = Overlap::waves;
}

// A kernel before the product reads the weights and writes them as they are multiplied. No other workgroup uses these
// bytes, so they count like those of the output.
void widen_first(const Op& op, double instructions, Launch& launch) {
  Arithmetic& arithmetic = launch.arithmetic;
  const double weights = static_cast<double>(op.n) * static_cast<double>(op.k);
  const Bytes wide = storage(arithmetic.multiplied_in, weights);
  ++launch.kernels;
  const auto access_of = [&launch](OperandRole role) {
    return std::ranges::find(launch.accesses(), role, &Access::role);
  };
  const Bytes narrow = std::exchange(access_of(OperandRole::weight)->unique, wide);
  access_of(OperandRole::output)->unique += narrow + wide;
  arithmetic.stored = arithmetic.multiplied_in;
  arithmetic.stored_values = weights;
  arithmetic.shaping_per_value = instructions;
}

// Weights of 2 and 3 bits are unpacked as those of 4 bits are.
[[nodiscard]] Dtype unpacked_as(Dtype stored) {
  return stored == Dtype::int2 || stored == Dtype::int3 ? Dtype::int4 : stored;
}

}  // namespace

double integer_instructions(const Op& op, double rows, double weights) {
  const double k = static_cast<double>(op.k);
  const double sums = rows * static_cast<double>(op.n) * k / op.weight_format.group_size;
  return (bits(op.weight_format.dtype) < 8 ? weights * kUnpackInstructions : 0) +
         static_cast<double>(op.m) * k * kRoundInstructions + sums * kScaleInstructions;
}

bool rounds_activations(const Op& op) { return bits(multiplied_in(op)) < bits(op.activation_dtype); }

Op with_rounded_activations(const Op& op, Rounding by, Launch& launch) {
  Op rounded = op;
  rounded.activation_dtype = multiplied_in(op);
  Bytes moved;
  for (Access& access : launch.accesses()) {
    if (access.role != OperandRole::activation) continue;
    const Bytes narrow = access.unique * bits(rounded.activation_dtype) / bits(op.activation_dtype);
    moved += std::exchange(access.unique, narrow) + narrow;
  }
  if (by != Rounding::kernel_before) return rounded;
  for (Access& access : launch.accesses())
    if (access.role == OperandRole::output) access.unique += std::exchange(moved, Bytes());
  ++launch.kernels;
  return rounded;
}

void lower_matmul(const Op& op, const MatmulKernel& kernel, const Device& device, Launch& launch) {
  if (kernel.rounding != Rounding::itself && rounds_activations(op))
    return lower_matmul(with_rounded_activations(op, kernel.rounding, launch), kernel, device, launch);
  const MatmulTile tile = kernel.tile(op, device);
  const Tiles cuts{cut(op.m, tile.rows), cut(op.n, tile.columns)};
  const Part part{std::ceil(static_cast<double>(op.m) / cuts.rows),
                  std::ceil(static_cast<double>(op.n) / cuts.columns)};
  const double per_tile = workgroups_per_tile(part, device);
  const double most_parts = std::max(1.0, std::floor(static_cast<double>(op.k) / kSmallestSplit));
  const bool gpu = device.kind == DeviceKind::gpu, is_tiled = gpu && op.m > kernel.gemv_rows(device);
  launch.tiles = cuts;
  for (Access& access : launch.accesses()) {
    if (access.role == OperandRole::weight) access.requests = cuts.rows;
    if (access.role == OperandRole::activation) access.requests = cuts.columns;
  }
  launch.grid.workgroups = per_tile * launch.tiles.rows * launch.tiles.columns;
  launch.grid.most_workgroups =
      is_tiled ? launch.grid.workgroups : launch.grid.workgroups * (gpu ? most_parts : static_cast<double>(op.n));
  set_arithmetic(op, cuts.rows, launch.arithmetic);
  launch.product = ProductShape{unpacked_as(op.weight_format.dtype), op.activations, launch.arithmetic.rows, op.k};
  if (!gpu) return;
  const bool has_slabs = is_tiled && kernel.slabs != nullptr;
  launch.resources =
      assumed_resources(op, part, per_tile, has_slabs ? threads_of(tile, device) : KernelResources{}.threads);
  if (has_slabs) set_slabs(op, part, kernel.slabs(device), device, launch);
  if (kernel.multiplied != nullptr) set_multiplied(kernel.multiplied(op, device), launch);
  launch.overlap = is_hopper(device) ? Overlap::all : Overlap::caches;
  launch.draws_for_idle = true;
  if (is_tiled) launch.most_parts = most_parts;
  launch.sums = static_cast<double>(op.m) * static_cast<double>(op.n);
  if (kernel.on_vector_units != nullptr)
    if (const auto product = kernel.on_vector_units(op, device)) set_vector_units(*product, launch);
  const bool has_own_grid = launch.arithmetic.waves_to_fill > 1;
  if ((is_tiled || has_own_grid) && kernel.parts != nullptr) launch.parts = kernel.parts(op, device);
  if (kernel.slices != nullptr) set_slices(op, kernel.slices(op, device), launch);
  if (kernel.widening > 0) widen_first(op, kernel.widening, launch);
}

}  // namespace dculab::lower
