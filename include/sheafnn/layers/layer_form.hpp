/// \file
/// LayerForm: which equation the layers of a network have. AttentionOptions and DirectedOptions: the additional options of
/// attention layers and directed layers. Source: math: "Convolutions and waves" (3.43, 3.44), "Sheaf attention" (3.47), "Copresheaves"
/// (3.50), "Directed sheaves" (3.54).
#pragma once

#include <array>
#include <optional>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/core/option.hpp"
#include "sheafnn/nn/complex_activation.hpp"

namespace sheafnn::layers {

/// The equations of layers, with Y = (I ⊗ A) X Bᵀ.
enum class LayerForm {
  diffusion,    ///< X' = (1 + tanh ε) ∘ X − ELU(Δ Y), or what a filter or an initial residual makes of it
  convolution,  ///< X' = ELU(Y − Δ Y + b)
  wave,         ///< X' = 2 X − X_before − ELU(Δ Y), X_before the input of the layer before
  attention,    ///< X' = ELU((Λ ⊙ Â) Y), or X + ELU((Λ ⊙ Â) Y − Y)
  copresheaf,   ///< X' = X + ELU((I ⊗ A) m Bᵀ + b), m the mean of the neighbours' ρ X
  directed  ///< X' = (1 + tanh ε) ∘ X − act(Δ Y), X complex, Δ with a phase for the direction of every arc
};
/// Their names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(LayerForm) {
  return std::array{"diffusion", "convolution", "wave", "attention", "copresheaf", "directed"};
}

/// May layers of a form have fixed filters, and have rotations learned edge weights by default? Takes any form.
[[nodiscard]] constexpr bool has_fixed_filters(LayerForm form) {
  return form == LayerForm::diffusion || form == LayerForm::convolution || form == LayerForm::wave;
}
/// \param filters  fixed ones of the features \throws std::invalid_argument  there are some. Takes any form.
SHEAFNN_NOINLINE inline void require_no_filters(Index filters, LayerForm form) {
  require(filters == 0, "fixed filters", filters,
          sheafnn::detail::concat("the layer ", to_string(form), " has none"));
}
/// Values per feature: 2 for complex features, the real part and the imaginary part. Takes any form, or no form, as in
/// networks without layers.
[[nodiscard]] constexpr Index parts_of(std::optional<LayerForm> form) {
  return form == LayerForm::directed ? 2 : 1;
}

/// Options of attention layers. Source: math: "Sheaf attention" (3.47); Barbero et al. 2022, Sheaf Attention Networks.
struct AttentionOptions {
  Index heads = 1;           ///< K, over which Λ is the mean
  Index width = 8;           ///< g, rows of W in each head
  bool transported = false;  ///< scores read Â_uv x_v in place of x_v
  bool residual = false;     ///< X' = X + ELU(M − Y) in place of ELU(M)
  bool normalised = false;   ///< Â = I − Δ in place of transports as they are, with I at the node itself
  bool random = false;       ///< scores have normal noise of a learned scale, with a KL term

  friend bool operator==(const AttentionOptions&, const AttentionOptions&) = default;
};

/// Declares the options: see core/option.hpp. Takes any options.
template <class Visit, OptionsOf<AttentionOptions>... Options>
void for_each_option(const Visit& visit, Options&... options) {
  using Range = OptionRange;
  visit({.key = "attention_heads",
         .summary = "with the layer attention: number of heads, whose weights are averaged",
         .range = Range::between(1, 64),
         .field = "attention.heads",
         .since = "0.2"},
        options.heads...);
  visit({.key = "attention_width",
         .summary = "with the layer attention: number of features of a node that the scores of a head read",
         .range = Range::between(1, 1024),
         .field = "attention.width",
         .since = "0.2"},
        options.width...);
  visit({.key = "attention_transported",
         .summary = "with the layer attention: scores read the neighbours' features after transport to the node",
         .field = "attention.transported",
         .since = "0.2"},
        options.transported...);
  visit({.key = "attention_residual",
         .summary = "with the layer attention: add to the layer's input instead of replacing it",
         .field = "attention.residual",
         .since = "0.2"},
        options.residual...);
  visit({.key = "attention_normalised",
         .summary = "with the layer attention: normalise the transports as in the Laplacian",
         .field = "attention.normalised",
         .since = "0.2"},
        options.normalised...);
  visit({.key = "random_attention",
         .summary = "with the layer attention: add normal noise of a learned scale to the scores, and a KL term "
                    "to the loss",
         .field = "attention.random",
         .since = "0.2"},
        options.random...);
}

/// Options of directed layers. Source: math: "Directed sheaves" (3.54); Sheaves reloaded: Directed sheaf neural networks, ICLR 2026.
struct DirectedOptions {
  double charge = 0.25;  ///< q: an arc along its direction has the phase 2πq, against it −2πq
  /// The activation of layers; encoders have its real form.
  ComplexActivation activation = ComplexActivation::complex_relu;
  bool imaginary_weights = false;  ///< A and B of the imaginary part are weights of its own
  bool imaginary_start = true;     ///< X_1 = (1 + i) H, otherwise H
  bool random = false;             ///< phases are drawn around these, with a learned concentration and a KL term

  friend bool operator==(const DirectedOptions&, const DirectedOptions&) = default;
};

/// Declares the options: see core/option.hpp. Takes any options.
template <class Visit, OptionsOf<DirectedOptions>... Options>
void for_each_option(const Visit& visit, Options&... options) {
  visit({.key = "charge",
         .summary = "with the layer directed: phase of an arc along its direction (1: a full circle)",
         .range = OptionRange::between(0, 1),
         .field = "directed.charge",
         .since = "0.2"},
        options.charge...);
  visit({.key = "complex_activation",
         .summary = "with the layer directed: activation of complex features",
         .field = "directed.activation",
         .since = "0.2"},
        options.activation...);
  visit({.key = "imaginary_weights",
         .summary = "with the layer directed: give imaginary parts weights of their own",
         .field = "directed.imaginary_weights",
         .since = "0.2"},
        options.imaginary_weights...);
  visit({.key = "imaginary_start",
         .summary = "with the layer directed: start imaginary parts as the real parts, instead of at 0",
         .field = "directed.imaginary_start",
         .since = "0.2"},
        options.imaginary_start...);
  visit({.key = "random_phases",
         .summary = "with the layer directed: draw phases around the directions, and add a KL term to the loss",
         .field = "directed.random",
         .since = "0.2"},
        options.random...);
}

/// Do layers draw something themselves? Takes any options.
[[nodiscard]] constexpr bool draws(LayerForm form, const AttentionOptions& attention,
                                   const DirectedOptions& directed) {
  return (form == LayerForm::attention && attention.random) || (form == LayerForm::directed && directed.random);
}

}  // namespace sheafnn::layers

namespace sheafnn {

using layers::AttentionOptions;
using layers::DirectedOptions;
using layers::LayerForm;

}  // namespace sheafnn
