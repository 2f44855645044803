/// \file
/// given_posterior(): the maps of a dataset, given as arrays, as the posterior of a model with given maps.
#pragma once

#include <optional>
#include <span>
#include <utility>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/posterior/around_given.hpp"
#include "sheafnn/posterior/given_maps.hpp"
#include "sheafnn/sheaf/cellular_sheaf.hpp"

namespace sheafnn {

/// \tparam Posterior  GivenMaps<Family> or AroundGiven<Family>
/// \param source      what determines the deviations of AroundGiven. By default, labels if the dataset has some, else arcs
/// \throws std::invalid_argument  a dataset without given maps, maps of another size or that the family refuses, or
///                                missing labels
template <class Posterior>
[[nodiscard]] Posterior given_posterior(const Dataset& data, std::optional<DeviationSource> source = {}) {
  using Family = typename Posterior::family;
  require(data.given_sheaf != nullptr, "given sheaf", "none", "the network needs one: its maps are not learned");
  const GivenMapArrays& arrays = *data.given_sheaf;
  CellularSheaf<Family> sheaf(data.graph, std::span<const double>(arrays.maps),
                              std::span<const double>(arrays.edge_weights));
  if constexpr (is_around_given<Posterior>) {
    const bool labelled = arrays.label_count > 0;
    const DeviationSource chosen = source.value_or(labelled ? DeviationSource::labels : DeviationSource::arcs);
    EdgeLabels labels;
    if (chosen == DeviationSource::labels) labels = {arrays.edge_labels, arrays.label_count};
    return Posterior(GivenMaps<Family>(std::move(sheaf)), chosen, std::move(labels));
  } else {
    return Posterior(std::move(sheaf));
  }
}

}  // namespace sheafnn
