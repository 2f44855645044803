/// \file
/// NetworkOptions: the options of all kinds of networks, for programs that choose the kind at run time. To add a kind,
/// add its type to the tuple; checkpoints, programs and Python then know it.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sheafnn/bsnn/bundle_options.hpp"
#include "sheafnn/bsnn/connection_options.hpp"
#include "sheafnn/bsnn/convolution_options.hpp"
#include "sheafnn/bsnn/cooperative_options.hpp"
#include "sheafnn/bsnn/flow_model_options.hpp"
#include "sheafnn/bsnn/hypergraph_options.hpp"
#include "sheafnn/bsnn/network_kind.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/bsnn/pooled_options.hpp"

namespace sheafnn {

/// One struct of options for each kind; the first is also for networks of layers on given maps, and for models that have no kind.
using NetworkOptions = std::tuple<ModelOptions, CooperativeOptions, FlowOptions, ConnectionModelOptions,
                                  ConvolutionOptions, BundleOptions, HypergraphOptions>;

/// NetworkOptions and the options of networks with outputs per graph. Checkpoints know these networks, but programs for
/// nodes do not choose them.
using StoredOptions =
    decltype(std::tuple_cat(std::declval<NetworkOptions>(), std::declval<std::tuple<PooledOptions>>()));

/// The kinds, in the order of NetworkOptions, and networks of layers on given maps.
inline constexpr auto network_kinds = []<class... Options>(std::type_identity<std::tuple<Options...>>) {
  return std::array{Options::kind..., ModelOptions::given_kind};
}(std::type_identity<NetworkOptions>());

/// The kind of a model. Unknown names have the first kind. Takes any name.
[[nodiscard]] constexpr const NetworkKind& kind_of(std::string_view model) {
  for (const NetworkKind& kind : network_kinds) {
    if (kind.has(model)) return kind;
  }
  return network_kinds.front();
}
/// Does a model of that name have a posterior? Takes any name.
[[nodiscard]] constexpr bool is_bayesian(std::string_view model) {
  return !model.empty() && kind_of(model).bayesian == model;
}

/// Does a model of that name work on hypergraphs, and not on graphs? Takes any name.
[[nodiscard]] constexpr bool is_on_hypergraphs(std::string_view model) { return kind_of(model).on_hypergraphs; }

/// Are the maps of a model of that name given with the data? Takes any name.
[[nodiscard]] constexpr bool has_given_sheaf(std::string_view model) {
  const NetworkKind& kind = kind_of(model);
  return !kind.learned_maps && kind.own_maps.empty();
}

/// Calls f with the options that a model has, out of the options of all kinds.
///
/// \param options  a tuple like NetworkOptions. Takes any name of a model
template <class Tuple, class F, std::size_t Last = std::tuple_size_v<Tuple> - 1>
decltype(auto) with_options_of(std::string_view model, Tuple& options, const F& f) {
  if constexpr (Last > 0) {
    if (!std::tuple_element_t<Last, Tuple>::kind.has(model)) {
      return with_options_of<Tuple, F, Last - 1>(model, options, f);
    }
  }
  return f(std::get<Last>(options));
}
/// Calls f with the options of each kind in turn. Takes any tuple of options.
template <class Tuple, class F>
void for_each_kind(Tuple& options, const F& f) {
  std::apply([&](auto&... of) { (f(of), ...); }, options);
}

}  // namespace sheafnn
