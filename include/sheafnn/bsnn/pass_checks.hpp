/// \file
/// Checks of the arguments of network passes, for all models.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

#include "sheafnn/bsnn/forward_pass.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/views.hpp"

namespace sheafnn::detail {

/// Checks that a sample has explicit noise, `each` arrays. \throws std::invalid_argument  fewer arrays
SHEAFNN_NOINLINE inline void check_noise_count(std::string_view name, std::size_t count, Index sample, Index each,
                                               std::string_view of) {
  if (count == 0 || static_cast<Index>(count) >= (sample + 1) * each) return;
  throw_invalid_argument(name, count,
                         concat("sample ", sample, " of ", each, " ", of, " needs ", (sample + 1) * each,
                                " arrays"));
}
/// Checks a sample of a pass. \throws std::invalid_argument  out of range, or one that the explicit noise does not have
template <class S>
void check_sample(const ForwardPass<S>& pass, Index sample, Index sheaf_count) {
  require(sample >= 0 && sample < 32768, "sample", sample, "must be between 0 and 32767");
  check_noise_count("noise", pass.noise.size(), sample, sheaf_count, "sheaves");
}
/// Checks the explicit noise of variables that layers draw, `size` values per layer; 0: layers draw nothing.
///
/// \throws std::invalid_argument  noise of another size, or noise although layers draw nothing
template <class S>
void check_layer_noise(const ForwardPass<S>& pass, Index size, Index layers) {
  require(size > 0 || pass.layer_noise.empty(), "layer_noise", pass.layer_noise.size(),
          "the layers of this model draw nothing");
  for (std::size_t i = 0; i < pass.layer_noise.size(); ++i) {
    require_size(pass.layer_noise[i], size, concat("layer_noise[", i, "]"));
  }
  check_noise_count("layer_noise", pass.layer_noise.size(), pass.sample, layers, "layers");
}
/// Checks indices of nodes or targets; `name` is in the singular. \throws std::invalid_argument  an index out of range,
/// or not above the previous index
SHEAFNN_NOINLINE inline void check_increasing(std::span<const std::int32_t> numbers, Index count,
                                              std::string_view name) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Index number = numbers[i];
    if (number < 0 || number >= count) {
      throw_invalid_argument(concat(name, "s[", i, "]"), number, concat("must be between 0 and ", count - 1));
    }
    if (i > 0 && numbers[i - 1] >= number) {
      throw_invalid_argument(concat(name, "s[", i, "]"), number, concat(name, " numbers must increase"));
    }
  }
}
/// Checks rates, sample and nodes. \throws std::invalid_argument  out of range
template <class S>
void check_pass(const ForwardPass<S>& pass, Index node_count) {
  const auto rate = [](std::string_view name, double value) {
    require(value >= 0 && value < 1, name, value, "must be at least 0 and below 1");
  };
  rate("input_dropout", pass.input_dropout);
  rate("dropout", pass.dropout);
  require(pass.sample >= 0 && pass.sample < 32768, "sample", pass.sample, "must be between 0 and 32767");
  require(pass.recompute_layers >= 0, "recompute_layers", pass.recompute_layers, "must be at least 0 (0: none)");
  if (pass.compress_layers && pass.recompute_layers != 0) {
    throw_invalid_argument("compress_layers", true,
                           concat("recompute_layers is ", pass.recompute_layers,
                                  ", and layers are either kept or computed again"));
  }
  check_increasing(pass.nodes, node_count, "node");
}
/// Checks the explicit noise of models that sample, `size` values per sheaf. \throws std::invalid_argument  noise of
/// another size
template <class S>
void check_noise(const ForwardPass<S>& pass, Index size, Index sheaf_count) {
  for (std::size_t i = 0; i < pass.noise.size(); ++i) require_size(pass.noise[i], size, concat("noise[", i, "]"));
  check_sample(pass, pass.sample, sheaf_count);
}
/// \throws std::invalid_argument  out of range
inline void check_backward(const BackwardOptions& options) {
  require(options.kl_weight >= 0 && std::isfinite(options.kl_weight), "kl_weight", options.kl_weight,
          "must be finite and at least 0");
  require_between("samples", options.samples, 1, 32768);
}
/// \throws std::invalid_argument  a graph without nodes, or features that do not fit it or the model's p
inline void check_input(Index node_count, Index rows, Index columns, Index model_features) {
  require(node_count >= 1, "nodes of the graph", node_count, "a network needs at least one");
  require(rows == node_count, "features.rows", rows, concat("must equal the number of nodes, ", node_count));
  require(columns == model_features, "features.columns", columns,
          concat("the model was built for ", model_features));
}

}  // namespace sheafnn::detail
