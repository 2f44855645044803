/// \file
/// Options of networks on connections: all options of networks of layers, and how the connection is computed.
#pragma once

#include <type_traits>

#include "sheafnn/bsnn/network_kind.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/sheaf/connection.hpp"

namespace sheafnn {

/// See the file comment. Options of a learner of maps have no effect.
struct ConnectionModelOptions : ModelOptions {
  static constexpr NetworkKind kind{.bayesian = "bconn-nsd",
                                    .deterministic = "conn-nsd",
                                    .options = "ConnectionModelOptions",
                                    .title = "Networks on connections",
                                    .maps = "maps computed from features",
                                    .own_maps = "connection",
                                    .learned_maps = false,
                                    .modules = "ConnNsd, BconnNsd"};

  ConnectionOptions connection = {};

  friend bool operator==(const ConnectionModelOptions&, const ConnectionModelOptions&) = default;
};

/// Declares the options: see core/option.hpp. Takes any options.
template <class Visit, OptionsOf<ConnectionModelOptions>... Options>
void for_each_option(const Visit& visit, Options&... options) {
  for_each_option(visit,
                  static_cast<std::conditional_t<std::is_const_v<Options>, const ModelOptions, ModelOptions>&>(
                      options)...);
  for_each_option(visit, options.connection...);
}

}  // namespace sheafnn
