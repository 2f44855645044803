/// \file
/// A trained model with other sheaves in place of its own, for example to measure how much the learned sheaf
/// contributes:
///
///     const auto trivial = sheafnn::with_sheaves(model, sheafnn::GivenMaps(sheafnn::CellularSheaf<Family>(data.graph)));
///     const auto prediction = sheafnn::predict(trivial, data);
///
/// Source: math: "The model".
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "sheafnn/bsnn/model.hpp"

namespace sheafnn {

namespace detail {

template <class Model>
struct ModelWithSheaves {};
template <template <RestrictionMapFamily, SheafSource, std::floating_point> class Kind, class Family,
          class Posterior, class S>
struct ModelWithSheaves<Kind<Family, Posterior, S>> {
  using type = Kind<Family, GivenMaps<Family>, S>;
};
template <class Family, class Posterior, class S, class Layers>
  requires(!std::is_same_v<Layers, LibraryLayers>)
struct ModelWithSheaves<SheafModel<Family, Posterior, S, Layers>> {
  using type = SheafModel<Family, GivenMaps<Family>, S, Layers>;
};

}  // namespace detail

/// The type that with_sheaves() returns: Snn, or GivenSheafFlow for networks in continuous time.
template <class Model>
using WithSheaves = typename detail::ModelWithSheaves<Model>::type;

/// The models that have maps of incident pairs: SheafModel and FlowModel.
template <class Model>
concept HasIncidentMaps = requires {
  typename WithSheaves<Model>;
};

/// The options of a network without a sheaf learner, whose maps are given or fixed. Options of the learner have their
/// defaults. Takes any options.
template <class Options>
[[nodiscard]] Options without_learner(Options options) {
  const Options defaults;
  options.edge_weights = false;
  options.separate_encoder = false;
  options.degree_input = defaults.degree_input;
  options.learner_layers = defaults.learner_layers;
  options.learner_width = defaults.learner_width;
  options.learner = defaults.learner;
  options.edge_features = defaults.edge_features;
  if constexpr (requires { options.edge_types; }) {
    options.edge_types = defaults.edge_types;
    options.node_types = defaults.node_types;
    options.stalks = defaults.stalks;
    options.edge_stalks = defaults.edge_stalks;
  }
  options.sheaf_activation = defaults.sheaf_activation;
  return options;
}

/// A model with these maps and, apart from them, the parameters of `model`.
///
/// \param maps  one sheaf for all layers, or model.sheaf_count() sheaves, over the graph of the networks that will use
///              the result
/// \throws std::invalid_argument  another number of sheaves, or a model that does not see edges
template <HasIncidentMaps Model>
[[nodiscard]] WithSheaves<Model> with_sheaves(const Model& model, GivenMaps<typename Model::Family> maps) {
  using S = typename Model::Scalar;
  WithSheaves<Model> r(without_learner(model.options()), 0, std::move(maps));
  const layers::ParameterSet<S>& from = model.parameters();
  for (std::size_t id = 0; id < r.parameters().info().size(); ++id) {
    const layers::ParameterId to = static_cast<layers::ParameterId>(id);
    r.parameters().set(to, from.get(from.find(r.parameters().info(to).name), from.values()));
  }
  return r;
}

}  // namespace sheafnn
