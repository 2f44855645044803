/// \file
/// The equation of a layer at one value of the features, X' = φ(X, Δ X, X_1; θ), which every engine runs. It is written
/// once, as a struct template over a tile T of channels. T is Pack on a CPU, four values on a thread of a device, or a scalar:
///
///     template <class T>
///     struct Decay {                                                                  // X' = X − tanh(γ) Δ X
///       static constexpr sheafnn::layers::EquationWeight weights[] = {{.name = "gamma", .tanh = true}};
///       T gamma;
///       template <class S>
///       SHEAFNN_HD explicit Decay(const S* rates) : gamma(rates[0]) {}                // tanh(γ_i) of a coordinate
///       SHEAFNN_HD T forward(const sheafnn::layers::LayerValues<T>& at) const { return at.x - gamma * at.z; }
///       SHEAFNN_HD sheafnn::layers::LayerValues<T> backward(const sheafnn::layers::LayerValues<T>& at, const T& bar, T* rates_bar) const {
///         rates_bar[0] = -bar * at.z;
///         return {.x = bar, .z = -gamma * bar};
///       }
///     };
///
/// An equation that reads X_1, which otherwise is 0, has the member `static constexpr bool reads_first = true;`, and one that
/// reads X_{l−1} has `reads_before`. One with `mixes` gets z = Δ Y of mixed features Y = (I ⊗ A) X̃ Bᵀ, and x without dropout.
/// With `reads_mixed` it gets Y in place of x, and with `has_bias` the bias of the channel. Its constructor may take the option
/// `activation` after the rates; without weights it may be an aggregate of that. The library's: kernels/layer_end.hpp.
///
/// Unchecked: pointers to as many values as there are weights. Takes any numbers.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"

namespace sheafnn::layers {

/// What an equation reads at one value of the features, or the derivatives with respect to it.
template <class T>
struct LayerValues {
  T x{};       ///< X, the layer's input after dropout
  T z{};       ///< Δ X
  T first{};   ///< X_1, the first layer's input
  T before{};  ///< X_{l−1}, the input of the layer before; of the first layer X_1
  T mixed{};   ///< Y = (I ⊗ A) X Bᵀ, of layers that mix; z is then Δ Y, and x has no dropout
  T bias{};    ///< of the channel, of layers that have a bias
};

/// A weight of an equation, one value w_i for each of the d' stalk coordinates.
struct EquationWeight {
  std::string_view name;  ///< in checkpoints, before the layer's index: `gamma` is gamma.0, gamma.1, …
  double initial = 0;
  bool tanh = false;  ///< the equation gets the rate tanh(w_i) in place of w_i
};

}  // namespace sheafnn::layers

namespace sheafnn::kernels {

/// How many weights an equation has.
template <class Equation>
inline constexpr int weight_count = 0;
template <class Equation>
  requires requires { Equation::weights; }
inline constexpr int weight_count<Equation> = static_cast<int>(std::size(Equation::weights));

/// The length of an array with one element per weight: at least one.
template <class Equation>
inline constexpr int weight_room = weight_count<Equation> > 0 ? weight_count<Equation> : 1;

/// Does an equation read X_1?
template <class Equation>
inline constexpr bool reads_first = requires { requires Equation::reads_first; };
/// Does an equation read X_{l−1}?
template <class Equation>
inline constexpr bool reads_before = requires { requires Equation::reads_before; };
/// Does an equation get Δ Y of mixed features, and X without dropout?
template <class Equation>
inline constexpr bool mixes = requires { requires Equation::mixes; };
/// Does it read Y in place of X?
template <class Equation>
inline constexpr bool reads_mixed = requires { requires Equation::reads_mixed; };
/// Does it have a bias of the channel?
template <class Equation>
inline constexpr bool has_bias = requires { requires Equation::has_bias; };

/// The rates of a coordinate from its weights, which lie `stride` values apart.
template <class Equation, class S>
SHEAFNN_HD SHEAFNN_INLINE void rates_of(const S* weights, Index stride, S* rates) {
  if constexpr (constexpr int count = weight_count<Equation>; count > 0) {
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      const auto rate = [&](Index k, bool bounded) {
        using std::tanh;
        const S weight = weights[k * stride];
        rates[k] = bounded ? tanh(weight) : weight;
      };
      (rate(static_cast<Index>(K), std::bool_constant<Equation::weights[K].tanh>::value), ...);
    }
    (std::make_index_sequence<static_cast<std::size_t>(weight_count<Equation>)>());
  }
}

/// The equation at a coordinate, from the coordinate's rates.
template <class Equation, class S, class Activation>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE Equation equation_of([[maybe_unused]] const S* rates,
                                                             [[maybe_unused]] const Activation& activation) {
  if constexpr (std::is_aggregate_v<Equation>) {
    return {activation};
  } else if constexpr (std::is_constructible_v<Equation, const S*, Activation>) {
    return Equation(rates, activation);
  } else {
    return Equation(rates);
  }
}

}  // namespace sheafnn::kernels

namespace sheafnn::layers {

/// See the file comment. \tparam T  its tile
template <class Equation, class T>
concept LayerEquation = requires(const scalar_of_t<T>* rates, const Equation& equation, const LayerValues<T>& at,
                                 const T& bar, T* rates_bar) {
  kernels::equation_of<Equation>(rates, true);
  { equation.forward(at) } -> std::convertible_to<T>;
  { equation.backward(at, bar, rates_bar) } -> std::same_as<LayerValues<T>>;
};

}  // namespace sheafnn::layers
