/// \file
/// Options of networks with outputs per graph (architecture). Source: math: "Pooling".
#pragma once

#include <type_traits>

#include "sheafnn/bsnn/network_kind.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/layers/pooling_options.hpp"

namespace sheafnn {

/// Architecture of a network with outputs per graph: the options of the node network, and how its features are pooled.
struct PooledOptions : ModelOptions {
  static constexpr NetworkKind kind{.bayesian = "graph-bsnn",
                                    .deterministic = "graph-nsd",
                                    .options = "PooledOptions",
                                    .title = "Networks with outputs per graph",
                                    .maps = "maps per incident pair, outputs per graph",
                                    .batched = false,
                                    .distributed = false,
                                    .program = "graphs",
                                    .python = "GraphClassifier"};

  Pooling pooling = Pooling::mean;
  Index pooling_steps = 8;  ///< K, number of low passes of harmonic pooling

  friend bool operator==(const PooledOptions&, const PooledOptions&) = default;
};

/// Declares the options: see core/option.hpp. Takes any options.
template <class Visit, OptionsOf<PooledOptions>... Options>
void for_each_option(const Visit& visit, Options&... options) {
  const auto network =
      []<class O>(O& of) -> std::conditional_t<std::is_const_v<O>, const ModelOptions&, ModelOptions&> {
    return of;
  };
  for_each_option(visit, network(options)...);
  visit({"pooling", "how the features of a graph's nodes become one row"}, options.pooling...);
  visit({"pooling_steps", "number of low passes of harmonic pooling", OptionRange::between(1, 256)},
        options.pooling_steps...);
}

}  // namespace sheafnn
