/// \file
/// BatchLayer: a layer of a batch, of the kinds that a model's LayerKinds have (for one network bsnn/layer_stack.hpp).
///
/// Unchecked: numbers of layers.
#pragma once

#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "sheafnn/batch/diffusion_layer.hpp"
#include "sheafnn/batch/laplacian_layer.hpp"
#include "sheafnn/bsnn/layer_stack.hpp"
#include "sheafnn/layers/laplacian_layer.hpp"

namespace sheafnn::batch::detail {

/// The layer of batches in the place of a network's. Of a kind that has none it is the diffusion layer, so that one message of
/// BatchLayer is all that a compiler says.
template <class Executor, class Kind, class S>
struct BatchLayerOf {
  static constexpr bool is_batched = false;
  using type = BatchDiffusionLayer<Executor, typename Kind::Family, S>;
};
template <class Executor, class Kind, class S>
  requires std::is_same_v<Kind, DiffusionLayer<typename Kind::Family, S>> ||
      std::is_same_v<Kind, PolynomialDiffusionLayer<typename Kind::Family, S>> ||
      std::is_same_v<Kind, InitialResidualLayer<typename Kind::Family, S>>
struct BatchLayerOf<Executor, Kind, S> {
  static constexpr bool is_batched = true;
  using type = BatchDiffusionLayer<Executor, typename Kind::Family, S>;
};
template <class Executor, template <class> class Equation, class Family, class S>
struct BatchLayerOf<Executor, LaplacianLayer<Equation, Family, S>, S> {
  static constexpr bool is_batched = true;
  using type = BatchLaplacianLayer<Executor, Equation, Family, S>;
};

/// A variant of types without those that occur twice.
template <class Known, class... Types>
struct DistinctVariant {
  using type = Known;
};
template <class... Known, class Type, class... Types>
struct DistinctVariant<std::variant<Known...>, Type, Types...>
    : DistinctVariant<std::conditional_t<(std::is_same_v<Known, Type> || ...), std::variant<Known...>,
                                         std::variant<Known..., Type>>,
                      Types...> {};

/// One of the layers.
template <class Executor, class Model>
class BatchLayer {
  using Family = typename Model::Family;
  using S = typename Model::Scalar;
  template <class... Kinds>
  using AllBatched = std::bool_constant<(BatchLayerOf<Executor, Kinds, S>::is_batched && ...)>;
  static_assert(
      Model::Layers::template Apply<AllBatched, Family, S>::value,
      "a kind of layer is for sheafnn::train alone: batches and devices have the library's kinds and those with "
      "an equation, sheafnn::LaplacianLayer");
  template <class... Kinds>
  using VariantOf =
      typename DistinctVariant<std::variant<>, typename BatchLayerOf<Executor, Kinds, S>::type...>::type;
  using Diffusion = BatchDiffusionLayer<Executor, Family, S>;

 public:
  /// \param of    which layer of the model
  /// \param made  what constructors of layers get
  template <class... Made>
  explicit BatchLayer(const LayerSetting& of, Made&&... made) : layer_(make(of, std::forward<Made>(made)...)) {}

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

  /// Does any kind read X_1 and add to its derivative in the scratch?
  static constexpr bool reads_first = []<class... Layers>(std::type_identity<std::variant<Layers...>>) {
    return (Layers::reads_first || ...);
  }(std::type_identity<typename Model::Layers::template Apply<VariantOf, Family, S>>());

 private:
  using Variant = typename Model::Layers::template Apply<VariantOf, Family, S>;

  template <class... Made>
  [[nodiscard]] static Variant make(const LayerSetting& of, Made&&... made) {
    std::optional<Variant> r;
    Model::Layers::template with_kind<Family, S>(of, [&]<class Kind>() {
      r.emplace(std::in_place_type<typename BatchLayerOf<Executor, Kind, S>::type>, made...);
    });
    return std::move(*r);
  }

  Variant layer_;
};

}  // namespace sheafnn::batch::detail
