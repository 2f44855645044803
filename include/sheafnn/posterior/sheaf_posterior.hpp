/// \file
/// SheafPosterior: what a distribution of restriction maps provides to be a model's posterior.
///
/// A posterior is a small, trivially copyable struct, one object for all incident pairs. Its state (a prior, a
/// parametrisation) is fixed when the model is built. Its functions are branch-free templates over T = float, double or
/// Pack. They run on the lanes of the CPU and on the threads of a GPU:
///
///     family             the restriction-map family it draws from
///     name               as checkpoints name it
///     mean_size          number of values that the learner's mean weights predict per incident pair
///     spread_size        the same for its spread weights; together they are the raw outputs
///     parameter_size     values that activate() makes of them, of which sample() reads the first sample_size
///     gradient_size      values that the derivatives in the distribution's parameters take
///     noise_size         random numbers per map
///     closed_form_kl     does it have kl() and kl_backward()? Otherwise the ELBO uses log_ratio()
///
///     activate(raw, parameters)                             the distribution of one incident pair
///     activate_backward(raw, parameters, gradient, raw_bar)  sets raw_bar
///     draw_noise(stream, arc, noise)                        a pure function of the arc's index
///     sample(parameters, noise, map)                        reparametrised: differentiable at fixed noise
///     sample_backward(parameters, noise, map, map_bar, c, gradient)
///                                                           adds the derivative of ⟨map_bar, F⟩ + c · log_ratio
///     log_ratio(parameters, noise, map)                     log q(F) − log p(F) at the map drawn
///     kl(parameters), kl_backward(parameters, weight, gradient)   KL(q ‖ prior); adds weight times its derivative
///     mean(parameters, map)                                 the distribution's location
///
/// A posterior may name parts of its parameters that users want to see besides the mean, a concentration or a standard
/// deviation: `static constexpr std::array spread_parameters = {ParameterRange{"kappa", 9, 1}};`. They are what
/// posterior_parameters() reads out; of a posterior without it, all parameters as "parameters".
///
/// A posterior may have the members `parametrisation` (RotationParametrisation), `sheaf_activation` (SheafActivation) and
/// `spread` (SpreadRange): a model sets them to the values in its options. Without the second, models refuse any activation
/// but tanh; without the third, the option changes nothing.
///
/// `noise` is null in sample_backward() and log_ratio() unless the posterior says needs_noise = true: where the
/// map itself is enough, it is not drawn again. Explicit noise comes row by row: noise_index(k), where there is
/// one, is the position in such a row of what draw_noise() puts at k. `Prior` types are described in
/// posterior/priors.hpp. Source: paper, "variational sheaf learner"; math: "The model".
///
/// Unchecked: the sizes of arrays, indices k of coordinates and draws, and that parameters come from activate(). The same
/// holds for all functions of posteriors, priors and point maps. Raw outputs may be any finite numbers.
#pragma once

#include <array>
#include <concepts>
#include <string_view>
#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/sheaf/family.hpp"

namespace sheafnn {

namespace detail {

template <class Q, class T>
concept PosteriorOver = requires(const Q& q, const T* in, T* out, const typename Q::family::template Map<T>& map,
                                 typename Q::family::template Map<T>& drawn, const Stream& stream,
                                 const word_of_t<T>& arc, const T& c) {
  q.activate(in, out);
  q.activate_backward(in, in, in, out);
  q.draw_noise(stream, arc, out);
  q.sample(in, in, drawn);
  q.sample_backward(in, in, map, map, c, out);
  { q.log_ratio(in, in, map) } -> std::convertible_to<T>;
  q.mean(in, drawn);
}
&&(!Q::closed_form_kl || requires(const Q& q, const T* in, T* out, const T& c) {
  { q.kl(in) } -> std::convertible_to<T>;
  q.kl_backward(in, c, out);
});

}  // namespace detail

/// See the file comment.
template <class Q>
concept SheafPosterior = RestrictionMapFamily<typename Q::family> && std::is_trivially_copyable_v<Q> && requires {
  { Q::name } -> std::convertible_to<std::string_view>;
  { Q::mean_size } -> std::convertible_to<int>;
  { Q::spread_size } -> std::convertible_to<int>;
  { Q::parameter_size } -> std::convertible_to<int>;
  { Q::sample_size } -> std::convertible_to<int>;
  { Q::gradient_size } -> std::convertible_to<int>;
  { Q::noise_size } -> std::convertible_to<int>;
  { Q::closed_form_kl } -> std::convertible_to<bool>;
} && detail::PosteriorOver<Q, double> && detail::PosteriorOver<Q, math::Pack<float, 16>>;

/// Values first … first + count − 1 of what a posterior's activate() writes, with a name.
struct ParameterRange {
  std::string_view name;
  int first = 0;
  int count = 1;
};
/// The parameters of a posterior that describe its spread; see the file comment.
template <class Q>
inline constexpr auto spread_parameters = [] {
  if constexpr (requires { Q::spread_parameters; }) {
    return Q::spread_parameters;
  } else {
    return std::array{ParameterRange{"parameters", 0, Q::parameter_size}};
  }
}();

/// No distribution at all, but a map: the sheaf source of deterministic models.
template <class Q>
inline constexpr bool is_point_mass = false;
/// A point mass on given maps (posterior/given_maps.hpp).
template <class Q>
inline constexpr bool has_given_maps = false;

namespace detail {

/// Is KL(q ‖ prior) known in closed form? Point masses have no KL term.
template <class Q>
inline constexpr bool closed_form_kl = [] {
  if constexpr (requires { Q::closed_form_kl; }) {
    return Q::closed_form_kl;
  } else {
    return false;
  }
}();

}  // namespace detail

/// Do sample_backward() or log_ratio() read the noise?
template <class Q>
inline constexpr bool needs_noise = [] {
  if constexpr (requires { Q::needs_noise; }) {
    return Q::needs_noise;
  } else {
    return false;
  }
}();

/// May entries of a map be absent? Then leave_out(k, present, parameters) gives coordinate k the prior's distribution where
/// `present` is 0, without a KL term, and coordinates are entries.
template <class Q>
inline constexpr bool can_leave_out = requires(const Q& q, const double& present, double* parameters) {
  q.leave_out(0, present, parameters);
};

/// Position of draw k in a row of explicit noise.
template <class Q>
[[nodiscard]] SHEAFNN_HD constexpr int noise_index(int k) {
  if constexpr (requires { Q::noise_index(k); }) {
    return Q::noise_index(k);
  } else {
    return k;
  }
}

}  // namespace sheafnn
