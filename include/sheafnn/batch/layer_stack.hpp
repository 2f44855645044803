/// \file
/// BatchLayer: a layer of a batch, of the kinds that a model's LayerKinds have (for one network bsnn/layer_stack.hpp).
///
/// Unchecked: indices of layers.
#pragma once

#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "sheafnn/batch/attention_layer.hpp"
#include "sheafnn/batch/copresheaf_layer.hpp"
#include "sheafnn/batch/diffusion_layer.hpp"
#include "sheafnn/batch/directed_layer.hpp"
#include "sheafnn/batch/laplacian_layer.hpp"
#include "sheafnn/batch/layer_setting.hpp"
#include "sheafnn/bsnn/layer_stack.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/layers/attention_layer.hpp"
#include "sheafnn/layers/copresheaf_layer.hpp"
#include "sheafnn/layers/directed_layer.hpp"
#include "sheafnn/layers/laplacian_layer.hpp"

namespace sheafnn::batch::detail {

/// The layer of batches in place of a network's. Of a kind that has none it is the diffusion layer, so that one message of
/// BatchLayer is all that a compiler says.
template <class Executor, class Kind, class S>
struct BatchLayerOf {
  static constexpr bool is_batched = false;
  using type = BatchDiffusionLayer<Executor, typename Kind::Family, S>;
};
template <class Executor, class Kind, class S>
  requires std::is_same_v<Kind, layers::DiffusionLayer<typename Kind::Family, S>> ||
      std::is_same_v<Kind, layers::PolynomialDiffusionLayer<typename Kind::Family, S>> ||
      std::is_same_v<Kind, layers::InitialResidualLayer<typename Kind::Family, S>>
struct BatchLayerOf<Executor, Kind, S> {
  static constexpr bool is_batched = true;
  using type = BatchDiffusionLayer<Executor, typename Kind::Family, S>;
};
template <class Executor, template <class> class Equation, class Family, class S, layers::LayerForm Form>
struct BatchLayerOf<Executor, layers::LaplacianLayer<Equation, Family, S, Form>, S> {
  static constexpr bool is_batched = true;
  using type = BatchLaplacianLayer<Executor, RunEquation<Equation, S>, Family, S>;
};
template <class Executor, class Family, class S>
struct BatchLayerOf<Executor, layers::CopresheafLayer<Family, S>, S> {
  static constexpr bool is_batched = true;
  using type = BatchCopresheafLayer<Executor, Family, S>;
};
template <class Executor, class Family, class S>
struct BatchLayerOf<Executor, layers::AttentionLayer<Family, S>, S> {
  static constexpr bool is_batched = true;
  using type = BatchAttentionLayer<Executor, Family, S>;
};
template <class Executor, class Family, class S>
struct BatchLayerOf<Executor, layers::DirectedLayer<Family, S>, S> {
  static constexpr bool is_batched = true;
  using type = BatchDirectedLayer<Executor, Family, S>;
};

/// A kind at places of a program's own.
template <class Executor, class Kind, class S>
  requires requires { typename Kind::Unplaced; }
struct BatchLayerOf<Executor, Kind, S> {
  static constexpr bool is_batched = BatchLayerOf<Executor, typename Kind::Unplaced, S>::is_batched;
  using type = typename BatchLayerOf<Executor, typename Kind::Unplaced, S>::type;
};

/// A variant of the types, without repetitions.
template <class Known, class... Types>
struct DistinctVariant {
  using type = Known;
};
template <class... Known, class Type, class... Types>
struct DistinctVariant<std::variant<Known...>, Type, Types...>
    : DistinctVariant<std::conditional_t<(std::is_same_v<Known, Type> || ...), std::variant<Known...>,
                                         std::variant<Known..., Type>>,
                      Types...> {};

/// Do batches have layers of these kinds?
template <class Executor, class S>
struct AreBatched {
  template <class... Kinds>
  constexpr bool operator()() const {
    return (BatchLayerOf<Executor, Kinds, S>::is_batched && ...);
  }
};
/// The layers of batches in the places of a network's: a std::type_identity of a variant.
template <class Executor, class S>
struct ListOfLayers {
  template <class... Kinds>
  constexpr auto operator()() const {
    return std::type_identity<
        typename DistinctVariant<std::variant<>, typename BatchLayerOf<Executor, Kinds, S>::type...>::type>();
  }
};

/// One of the layers.
template <class Executor, class Model>
class BatchLayer {
  using Family = typename Model::Family;
  using S = typename Model::Scalar;
  static_assert(
      (Model::Layers::template with_all<Family, S>(AreBatched<Executor, S>())),
      "a kind of layer is for sheafnn::train alone: batches and devices have kinds of the library and those with "
      "an equation, sheafnn::layers::LaplacianLayer");
  using Variant =
      typename decltype(Model::Layers::template with_all<Family, S>(ListOfLayers<Executor, S>()))::type;
  using Diffusion = BatchDiffusionLayer<Executor, Family, S>;

 public:
  static constexpr bool drops = true;  ///< some of its input

  /// Do layers of a model draw something themselves? \throws std::invalid_argument  layers that the model's kinds lack
  [[nodiscard]] static bool draws(const Model& model) {
    bool r = false;
    for (Index l = 0; l < model.options().layers; ++l) {
      const layers::LayerSetting of = setting(model, static_cast<std::size_t>(l));
      Model::Layers::template with_kind<Family, S>(of, [&]<class Kind>() {
        r = r || layers::draws(Kind::form, of.attention, of.directed);
      });
    }
    return r;
  }

  /// \throws std::invalid_argument  options that batches lack
  BatchLayer(const Model& model, const BatchLayerSetting<Executor, S>& of)
      : layer_(make(setting(model, of.number), of)) {}

  /// use(layer) for the layer, whatever its kind is.
  template <class Use>
  decltype(auto) with(const Use& use) {
    return std::visit(use, layer_);
  }
  [[nodiscard]] const S* output() {
    return with([](const auto& layer) { return layer.output(); });
  }
  [[nodiscard]] S* dropped_input() {
    return with([](auto& layer) { return layer.dropped_input(); });
  }
  [[nodiscard]] LayerProducts<S> products(const Pass& pass, const ParameterView<S>& parameters,
                                          const LayerScratch<Executor, S>& scratch) {
    return with([&](const auto& layer) { return layer.products(pass, parameters, scratch); });
  }
  /// The library's own layer, which may share launches with another one; else null.
  [[nodiscard]] Diffusion* diffusion() noexcept {
    return with([](auto& layer) -> Diffusion* {
      if constexpr (std::is_same_v<std::remove_reference_t<decltype(layer)>, Diffusion>) {
        return &layer;
      } else {
        return nullptr;
      }
    });
  }

  /// Does any kind read X_1 and add to its derivative in the scratch? Does any kind read X_{l−1}, or the maps of arcs?
  static constexpr bool reads_first = []<class... Each>(std::type_identity<std::variant<Each...>>) {
    return (Each::reads_first || ...);
  }(std::type_identity<Variant>());
  static constexpr bool reads_before = []<class... Each>(std::type_identity<std::variant<Each...>>) {
    return (Each::reads_before || ...);
  }(std::type_identity<Variant>());
  static constexpr bool reads_maps = []<class... Each>(std::type_identity<std::variant<Each...>>) {
    return (Each::reads_maps || ...);
  }(std::type_identity<Variant>());

 private:
  [[nodiscard]] static layers::LayerSetting setting(const Model& model, std::size_t number) {
    layers::LayerSetting r = model.layer_setting();
    r.number = static_cast<Index>(number);
    return r;
  }
  [[nodiscard]] static Variant make(const layers::LayerSetting& of,
                                    const BatchLayerSetting<Executor, S>& in_batch) {
    std::optional<Variant> r;
    Model::Layers::template with_kind<Family, S>(of, [&]<class Kind>() {
      constexpr layers::LayerForm form = Kind::form;
      require(layers::parts_of(form) == layers::parts_of(of.form), "layer", to_string(form),
              sheafnn::detail::concat("the option `layer` is ", to_string(of.form),
                                      ", and in batches all layers have complex features, or none"));
      if constexpr (requires { typename Kind::Unplaced; }) check_placed<typename Kind::Unplaced>(of);
      r.emplace(std::in_place_type<typename BatchLayerOf<Executor, Kind, S>::type>, in_batch);
    });
    return std::move(*r);
  }

  /// \throws std::invalid_argument  options for other layers than these
  template <class Kind>
  static void check_placed(layers::LayerSetting of) {
    const bool alike = of.form == Kind::form || !(of.filter.active() || of.residual.initial());
    of.form = Kind::form;  // the place is the program's choice
    if (alike && Kind::suits(of)) return;
    constexpr const char* why = "in batches all layers have it, or none";
    if (of.filter.active()) throw_invalid_argument("filter.basis", to_string(of.filter.basis), why);
    if (of.residual.initial()) throw_invalid_argument("residual.form", to_string(of.residual.form), why);
    throw_invalid_argument("layer", of.number, "it needs a filter or an initial residual, which the options lack");
  }

  Variant layer_;
};

}  // namespace sheafnn::batch::detail
