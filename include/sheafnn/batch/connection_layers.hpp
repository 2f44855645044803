/// \file
/// With this header BatchNetwork takes ConnectionModel: networks on connections (bsnn/connection_model.hpp). The runs of a
/// batch share the connection.
#pragma once

#include <concepts>

#include "sheafnn/batch/network.hpp"
#include "sheafnn/bsnn/connection_model.hpp"

namespace sheafnn::batch::detail {

/// See network_parts.hpp.
template <class Executor, int D, bool Bayesian, std::floating_point S>
struct ModelLayers<Executor, ConnectionModel<D, Bayesian, S>> {
  using Layer = BatchLayer<Executor, ConnectionModel<D, Bayesian, S>>;
  [[nodiscard]] static const ModelOptions& options(const ConnectionModel<D, Bayesian, S>& model) {
    return model.options();
  }
};

}  // namespace sheafnn::batch::detail
