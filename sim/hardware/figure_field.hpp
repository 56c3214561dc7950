// One entry per figure of a machine or a stack, with everything that is known of it: its key and what it means, what it
// may be, what holds where no file states it, how "2 x" changes it, and what calibration believes before it has
// measured. Readers and writers of files, --set, fits, schemas and the reference pages go by these entries.
//
//   inline constexpr auto kOverheads = std::to_array<FigureField<Overheads>>({
//       {"timed_call", &Overheads::timed_call, "overhead in the time of a kernel that was timed on its own",
//        {.prior = time_prior(16, 0.70)}},
//   });
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>

#include "core/units.hpp"
#include "fields/bounds.hpp"
#include "fields/field_list.hpp"
#include "sim/hardware/power.hpp"

namespace dculab::sim {

// Each count fits an int with room to spare; products of them are taken as doubles.
inline constexpr double kLargestFigureCount = 1 << 20;

// What a figure of this type may be unless its entry says otherwise: a few orders of magnitude more than any hardware
// has, so that whatever is computed from it is finite.
template <class T>
[[nodiscard]] constexpr Bounds usual_bounds() {
  if constexpr (std::is_same_v<T, int>) return between(1, kLargestFigureCount);
  if constexpr (std::is_same_v<T, double>) return between(1e-4, 1);            // shares
  if constexpr (std::is_same_v<T, Seconds>) return between(0, 1e3);            // overheads
  if constexpr (std::is_same_v<T, Bytes>) return between(1, 0x1p50);           // 1024 TiB
  if constexpr (std::is_same_v<T, Hertz>) return between(1e3, 1e12);           // 1 kHz, 1000 GHz
  if constexpr (std::is_same_v<T, BytesPerSecond>) return between(1e3, 1e20);  // 1 kB/s, 10^8 TB/s
  if constexpr (std::is_same_v<T, FlopsPerSecond>) return between(1e3, 1e21);  // 1 kFLOP/s, 10^6 PFLOP/s
  if constexpr (std::is_same_v<T, Watts>) return between(1e-3, 1e6);           // 1 mW, 1 MW
}
inline constexpr Bounds kLatencyBounds = between(1e-12, 1e3);  // s
inline constexpr Bounds kCountsFromZero = between(0, kLargestFigureCount);

// What another measure of a figure is: "2 x", or a tenth more.
enum class Scaling : std::uint8_t {
  any_factor,    // counts move by one at least
  power_of_two,  // half or double
  to_all,        // a share of something of which there is no more than all
  none           // no quantity of its own
};

// Whose figure it is: the device's, whatever runs there; its kernels'; the program's, on a vendor's devices; or the
// time that a host takes for it.
enum class Owner : std::uint8_t { device, kernels, program, host };

// What calibration believes of a figure before anything was measured, beside its value: a factor of exp(log_sigma)
// either way is plausible.
struct Prior {
  int place = 0;  // among all that is fitted, from 1, in fits and reports; 0: is not fitted
  double log_sigma = 0;
  double lowest = 0, highest = 1;
  Owner owner = Owner::device;
  // Share of log_sigma in a fit to published points. Less of figures that would stand there for what else a kernel's
  // price lacks: a workgroup starts in some hundreds of clocks; what caches sustain, and how long after a kernel the
  // next one starts, was measured on cards of two vendors.
  double of_points = 1;
};

[[nodiscard]] constexpr Prior share_prior(int place, double log_sigma, Owner owner = Owner::device,
                                          double of_points = 1) {
  constexpr double kLeast = 0.02;
  return {place, log_sigma, kLeast, 1, owner, of_points};
}
[[nodiscard]] constexpr Prior time_prior(int place, double log_sigma, Owner owner = Owner::device,
                                         double of_points = 1) {
  constexpr double kLeast = 1e-10, kLongest = 1e-2;  // s
  return {place, log_sigma, kLeast, kLongest, owner, of_points};
}

// What an entry says beside its key, its member and its meaning.
struct FigureTraits {
  std::string_view unit{};         // of bare numbers; usually "count" of an int, "share" of a double
  std::optional<Bounds> bounds{};  // usually usual_bounds
  Necessity necessity = Necessity::optional;
  std::string_view absent{};  // what holds where it is left out; usually the default of the member
  std::string_view of{};      // of a share: what it is a share of
  Scaling scaling = Scaling::any_factor;
  Prior prior{};
};

// How a file writes it: as a whole number, a number, or a number with its unit.
enum class FigureForm : std::uint8_t { whole, number, quantity };

struct FigureInfo {
  std::string_view key;
  std::string_view meaning;
  std::string_view unit;
  FigureForm form = FigureForm::quantity;
  Bounds bounds;
  Necessity necessity = Necessity::optional;
  std::string_view absent;
  std::string_view of;
  Scaling scaling = Scaling::any_factor;
  Prior prior;

  [[nodiscard]] constexpr bool is_required() const { return necessity == Necessity::required; }
};

// The figure that `T` may be: itself, or what an optional holds.
template <class T>
struct FigureOf {
  using Type = T;
};
template <class T>
struct FigureOf<std::optional<T>> {
  using Type = T;
};

// An entry of figures of type T.
template <class T>
[[nodiscard]] constexpr FigureInfo figure_info(std::string_view key, std::string_view meaning,
                                               const FigureTraits& traits = {}) {
  using Value = typename FigureOf<T>::Type;
  std::string_view unit = dculab::unit_of<Value>();
  const FigureForm form = !unit.empty()                ? FigureForm::quantity
                          : std::is_same_v<Value, int> ? FigureForm::whole
                                                       : FigureForm::number;
  if (unit.empty()) unit = std::is_same_v<Value, int> ? dculab::unit::count : dculab::unit::share;
  return {key,
          meaning,
          traits.unit.empty() ? unit : traits.unit,
          form,
          traits.bounds ? *traits.bounds : usual_bounds<Value>(),
          traits.necessity,
          traits.absent,
          traits.of,
          traits.scaling,
          traits.prior};
}

// A figure that is a member of `Part`.
template <class Part>
struct FigureField {
  using Member =
      std::variant<int Part::*, double Part::*, Seconds Part::*, Bytes Part::*, Hertz Part::*, BytesPerSecond Part::*,
                   FlopsPerSecond Part::*, std::optional<int> Part::*, std::optional<double> Part::*,
                   std::optional<Seconds> Part::*, std::optional<BytesPerSecond> Part::*,
                   std::optional<FlopsPerSecond> Part::*, std::optional<Watts> Part::*>;

  // `Owner` is Part or a base of it.
  template <class T, class Owner>
  constexpr FigureField(std::string_view key, T Owner::*figure, std::string_view meaning,
                        const FigureTraits& traits = {})
      : info(figure_info<T>(key, meaning, traits)), member(static_cast<T Part::*>(figure)) {}

  FigureInfo info;
  Member member;
};

// A figure in core units. Precondition: an optional has one.
template <class T>
[[nodiscard]] constexpr double number_of(const T& figure) {
  if constexpr (requires { figure.value(); })
    return number_of(figure.value());
  else
    return static_cast<double>(figure);
}

// Calls use(member of `part`) with the figure that `field` means.
template <class Part, class OfPart, class Use>
auto visit_figure(OfPart& part, const FigureField<Part>& field, Use use) {
  return std::visit([&](auto member) { return use(part.*member); }, field.member);
}

}  // namespace dculab::sim
