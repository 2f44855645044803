/// \file
/// LayerKinds: the kinds of layers that networks of a model may have, and LayerStack: the layers of a network.
#pragma once

#include <algorithm>
#include <concepts>
#include <memory>
#include <type_traits>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/model_layout.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/layers/arrays_in_turn.hpp"
#include "sheafnn/layers/diffusion_layer.hpp"
#include "sheafnn/layers/initial_residual_layer.hpp"
#include "sheafnn/layers/layer.hpp"
#include "sheafnn/layers/layer_segments.hpp"
#include "sheafnn/layers/masked_layer.hpp"
#include "sheafnn/layers/normed_layer.hpp"
#include "sheafnn/layers/polynomial_diffusion_layer.hpp"

namespace sheafnn {

/// Every layer has the first kind that suits its setting, so a network may mix kinds.
///
/// \tparam Kinds  class templates Kind<Family, S>, derived from Layer; see layers/layer.hpp
template <template <RestrictionMapFamily, class> class... Kinds>
struct LayerKinds {
  /// use.template operator()<Kind, …>() for all kinds.
  template <class Family, class S, class Use>
  static constexpr auto with_all(const Use& use) {
    return use.template operator()<Kinds<Family, S>...>();
  }
  /// Calls use.template operator()<Kind>() for the kind of a layer.
  ///
  /// \throws std::invalid_argument  no kind suits the setting
  template <class Family, class S, class Use>
  static void with_kind(const layers::LayerSetting& of, const Use& use) {
    const auto used = [&]<class Kind>() {
      if (!Kind::suits(of)) return false;
      use.template operator()<Kind>();
      return true;
    };
    if ((used.template operator()<Kinds<Family, S>>() || ...)) return;
    constexpr const char* why = "the model's LayerKinds have no layer with it";
    if (of.filter.active()) throw_invalid_argument("filter.basis", to_string(of.filter.basis), why);
    if (of.residual.initial()) throw_invalid_argument("residual.form", to_string(of.residual.form), why);
    if (of.form != LayerForm::diffusion) {
      throw_invalid_argument("layer", to_string(of.form),
                             detail::concat(why, ": <sheafnn/every_layer.hpp> has one"));
    }
    throw_invalid_argument("layer", of.number, "none of the model's LayerKinds suits it");
  }
  /// The form of the first kind.
  template <class Family>
  static constexpr LayerForm first_form() {
    return with_all<Family, float>([]<class First, class... Others>() { return First::form; });
  }
};

/// A kind of layer for which `Chosen` replaces suits():
///
///     template <class Family, class S>
///     using FirstLayer = LayerWhere<PolynomialDiffusionLayer<Family, S>, [](const LayerSetting& of) { return of.number == 0; }>;
///
/// \tparam Kind    derived from Layer
/// \tparam Chosen  bool(const LayerSetting&); takes any setting
template <class Kind, auto Chosen>
class LayerWhere final : public Kind {
 public:
  using Unplaced = Kind;  ///< the kind without the choice, for engines that look a kind up
  using Kind::Kind;
  [[nodiscard]] static bool suits(const layers::LayerSetting& of) { return Chosen(of); }
};

/// The kinds that networks of bsnn.hpp may have.
using LibraryLayers =
    LayerKinds<layers::DiffusionLayer, layers::PolynomialDiffusionLayer, layers::InitialResidualLayer>;

namespace detail {

/// The places of the weights of layers. The entry in `layers` is empty if a layer has no DiffusionWeights, neither as its
/// weights nor as their member `mixing`.
template <class Kinds, class Family, class S>
void declare_layers(ParameterList<ParameterSlot>& list, LayerSetting of, Index count, bool norm,
                    LayerWeights<ParameterSlot>& at) {
  declare_in_order(list, count, [&](Index l) {
    of.number = l;
    Kinds::template with_kind<Family, S>(of, [&]<class Kind>() {
      typename Kind::template Weights<ParameterSlot> weights;
      weights.declare(list, of);
      if constexpr (std::is_same_v<decltype(weights), DiffusionWeights<ParameterSlot>>) {
        at.layers.push_back(weights);
      } else if constexpr (requires {
                             { weights.mixing } -> std::same_as<DiffusionWeights<ParameterSlot>&>;
                           }) {
        at.layers.push_back(weights.mixing);
      } else {
        at.layers.emplace_back();
      }
    });
    if (norm) at.norms.emplace_back().declare_after_layer(list, of.row());
  });
}

/// The layers of a network on one graph.
template <class Family, class S>
class LayerStack {
 public:
  /// \param graph, shape, stalks  must outlive the stack. Null stalks: all have D
  /// \throws std::invalid_argument  on a part of a graph, kinds of layers that cannot be combined
  template <class Model>
  LayerStack(const Model& model, const Graph& graph, const DiffusionShape<S>& shape,
             const StalkMasks<S>* stalks = nullptr) {
    LayerSetting of = model.layer_setting();
    const std::size_t bytes = static_cast<std::size_t>(graph.node_count() * shape.row()) * sizeof(S);
    // All parts of a graph must make the same choice, since they exchange rows of the recomputed terms.
    if (graph.part() == nullptr) of.terms = choose_terms(of.filter, model.options().normalisation, bytes);
    const Layer<Family, S>* before = nullptr;
    Index own = -1,
          sharing = -1;  // a layer that takes the derivatives of its own arcs, and one that shares cut edges
    for (of.number = 0; of.number < model.options().layers; ++of.number) {
      std::unique_ptr<Layer<Family, S>> layer;
      std::type_index kind = typeid(void);
      Model::Layers::template with_kind<Family, S>(of, [&]<class Kind>() {
        if constexpr (std::is_constructible_v<Kind, const Graph&, const DiffusionShape<S>&, LayerSetting&,
                                              const Layer<Family, S>*>) {
          layer = std::make_unique<Kind>(graph, shape, of, before);
        } else {
          layer = std::make_unique<Kind>(graph, shape, of);
        }
        kind = typeid(Kind);
      });
      before = layer.get();
      const LayerReads reads = layer->reads();
      if (reads.own_arcs || reads.scales)
        own = of.number;
      else if (reads.blocks)
        sharing = of.number;
      reads_ = reads_.with(reads);
      wrapped_ = model.options().layer_norm || stalks != nullptr;
      if (model.options().layer_norm) {
        layer = std::make_unique<NormedLayer<Family, S>>(std::move(layer), graph.node_count(), shape.row());
      }
      if (stalks != nullptr) {
        layer =
            std::make_unique<MaskedLayer<Family, S>>(std::move(layer), *stalks, graph.node_count(), shape.row());
      }
      kinds_.push_back(kind);
      layers_.push_back(std::move(layer));
    }
    if (graph.part() == nullptr || own < 0 || sharing < 0) return;
    throw_invalid_argument(
        "layer", sharing,
        "on parts of a graph it cannot stand beside layers with attention or a filter, whose edges "
        "between parts have other derivatives");
  }

  [[nodiscard]] Index count() const noexcept { return static_cast<Index>(layers_.size()); }
  /// A layer. Unchecked: l in 0 … count() − 1
  [[nodiscard]] Layer<Family, S>& operator[](Index l) const noexcept {
    return *layers_[static_cast<std::size_t>(l)];
  }
  /// Do layers go around others, and write derivatives to scratch[0] before these read Y?
  [[nodiscard]] bool wrapped() const noexcept { return wrapped_; }
  /// What at least one of the layers reads.
  [[nodiscard]] LayerReads reads() const noexcept { return reads_; }
  /// Which layers share arrays.
  [[nodiscard]] const LayerSegments& segments() const noexcept { return segments_; }
  /// \param length, compresses  see LayerSegments; the input of a segment stays, and where layers read X_{l−1}, this one as well
  void set_memory(Index length, bool compresses, Execution execution) {
    if (const LayerSegments segments(count(), length, compresses); segments != segments_) {
      outputs_.end();
      others_.end();
      segments_ = segments;
      if (segments.shares()) share_arrays();
    }
    // Before layers run, encoders use the memory of X_{L+1}.
    if (compresses) outputs_.take(count() - 1, execution, false);
  }
  /// Before the forward pass of layer l. \param keep  will a backward pass follow?
  void take_memory(Index l, Execution execution, bool keep) {
    outputs_.take(l, execution, keep && segments_.compressed);
    others_.take(l, execution, keep && segments_.compressed);
  }
  /// Before the backward pass of layer l: brings back what it kept in 16 bits, and its inputs.
  void restore_memory(Index l, Execution execution) {
    others_.restore(l, execution);
    for (Index m = l; m >= std::max<Index>(l + 1 - outputs_in_place(), 0); --m) outputs_.restore(m, execution);
  }
  /// Calls use(l, mask) for the dropouts of the layers' inputs.
  template <class Use>
  void for_masks(const Use& use) const {
    for (Index l = 0; l < count(); ++l) use(l, (*this)[l].mask());
  }
  /// \tparam T  const S or S
  template <class T>
  void declare(ParameterList<T>& list) {
    declare_in_order(list, count(), [&](Index l) { (*this)[l].declare(list); });
  }

 private:
  /// Number of layers whose outputs a layer's passes need in place: its own, X_l and, where layers read it, X_{l−1}.
  [[nodiscard]] Index outputs_in_place() const noexcept { return reads_.before ? 3 : 2; }
  /// Lets layers of one kind share their arrays. Outputs that other layers read stay, or follow each other in as many arrays as are
  /// needed in place.
  void share_arrays() {
    for (Index l = 0; l < count(); ++l) {
      std::vector<Buffer<S>*> output, others;
      (*this)[l].list_memory(others);
      if (!others.empty()) {
        output.push_back(others.front());
        others.erase(others.begin());
      }
      const auto same = std::find(kinds_.begin(), kinds_.end(), kinds_[static_cast<std::size_t>(l)]);
      const Index set = segments_.set(l) * count() + (same - kinds_.begin()), own = -1 - l;
      Index where = set;
      if (segments_.compressed) {
        where = l % outputs_in_place();
      } else if (segments_.place(l) + outputs_in_place() > segments_.length) {
        where = own;
      }
      if (output.empty()) where = own;
      others_.add(std::move(others), set);
      outputs_.add(std::move(output), where);
    }
  }

  std::vector<std::unique_ptr<Layer<Family, S>>> layers_;
  std::vector<std::type_index> kinds_;
  LayerSegments segments_;
  ArraysInTurn<S> outputs_, others_;  ///< the first array of list_memory(), and the others
  bool wrapped_ = false;
  LayerReads reads_ = {.blocks = false, .work = false};
};

}  // namespace detail

}  // namespace sheafnn
