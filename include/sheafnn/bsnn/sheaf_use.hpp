/// \file
/// Is the sheaf that a network has learned used? Figures of its maps, and the loss with other maps in their place:
///
///     const auto use = sheafnn::sheaf_use(model, data, data.splits[0].validation);
///     std::puts(sheafnn::warning(use).c_str());
///
/// The score is the mean of −log p(label) over the nodes, with probabilities averaged over the samples of a Bayesian
/// model. It is computed with the model's maps and with three replacements. Permuted: edge e gets both maps of edge
/// π(e), with a new permutation π of the edges for every sheaf and sample. Prior: maps drawn from the posterior's
/// prior, for deterministic models from random_map(), which is uniform for rotations. Identity: identity maps. Edge
/// weights stay at their edges, and all other parameters stay the same. Probabilities below 1e-30 count as 1e-30. A
/// loss is NaN if the outputs with these maps are not finite, or if a flow takes too many steps. Accuracies are
/// computed together with the losses.
///
/// Networks whose stalks have dimensions of their own have no figures. Cooperative networks: cooperative_sheaf_use.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/given_sheaf.hpp"
#include "sheafnn/bsnn/learned_sheaf.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/sheaf_use_figures.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/graph/splits.hpp"
#include "sheafnn/rotation/nearest_rotation.hpp"
#include "sheafnn/sheaf/random_sheaf.hpp"
#include "sheafnn/sheaf/symmetric_eigen.hpp"

namespace sheafnn {

/// With seed, epoch and samples of predict(), the score's loss is the loss of its prediction.
struct SheafUseOptions {
  Index samples = 3;        ///< 1 … 32768, of the posterior, of permutations and of draws from the prior
  std::uint64_t seed = 0;   ///< seed of these samples
  std::uint32_t epoch = 0;  ///< addresses the noise
  int threads = 0;          ///< 0: chosen by the size of the graph; results do not depend on it
};

namespace detail {

/// Degrees by which a rotation turns; for D ≥ 4 the largest angle between a vector and its image.
template <int D>
[[nodiscard]] double degrees_of(const SquareMatrix<double, D>& rotation) {
  const double degree = 180 / std::acos(-1.0);
  if constexpr (D <= 3) {
    return degree * std::abs(rotation_angle<double, D>(rotation));
  } else {
    const SquareMatrix<double, D> symmetric = (rotation + rotation.transpose()) / 2;
    return degree * std::acos(std::clamp(symmetric_eigen<double, D>(symmetric).values(D - 1), -1.0, 1.0));
  }
}

/// Collects the angles or signs of all transports, one sheaf after another.
template <class Family>
struct TransportFigures {
  static constexpr int D = Family::stalk_dimension;
  std::vector<double> degrees;
  double negative = 0, entries = 0;

  void add(const CellularSheaf<Family>& sheaf) {
    const Graph& graph = sheaf.graph();
    for (Index e = 0; e < graph.edge_count(); ++e) {
      const auto &from = sheaf.map(graph.forward_arc(e)), &to = sheaf.map(graph.reverse(graph.forward_arc(e)));
      if constexpr (!is_dense_block<typename Family::template Map<double>>) {
        for (Index k = 0; k < from.size(); ++k) negative += from(k) * to(k) < 0 ? 1 : 0;
        entries += static_cast<double>(from.size());
      } else if constexpr (is_orthogonal<Family>) {
        degrees.push_back(degrees_of<D>(from.transpose() * to));
      } else {
        const SquareMatrix<double, D> product = Family::dense(from).transpose() * Family::dense(to);
        try {
          degrees.push_back(degrees_of<D>(nearest_rotation<double, D>(product)));
        } catch (const std::invalid_argument&) {
          continue;  // more than one rotation is nearest
        }
      }
    }
  }
};

/// A map drawn from the prior of a posterior; from random_map() if there is no prior, or the posterior cannot draw from
/// it.
template <class Posterior>
[[nodiscard]] auto prior_map([[maybe_unused]] const Posterior& posterior, const Stream& stream,
                             std::uint32_t arc) {
  using Family = typename Posterior::family;
  constexpr int D = Family::stalk_dimension;
  if constexpr (requires { posterior.prior.deviation(0); }) {
    typename Family::template Map<double> map;
    double z[array_size(Family::coordinate_count)];
    fill_normals<Family::coordinate_count>(z, stream, arc);
    for (int k = 0; k < Family::coordinate_count; ++k) {
      z[k] = posterior.prior.mean(k) + posterior.prior.deviation(k) * z[k];
    }
    Family::from_coordinates(static_cast<const double*>(z), map);
    return map;
  } else if constexpr (requires { posterior.prior.concentration(); }) {
    const SquareMatrix<double, D> uniform = haar_rotation<double, D>(stream, arc);
    const SquareMatrix<double, D> location = posterior.prior.location();
    return SquareMatrix<double, D>(
        multiply(moebius<double, D>(uniform, posterior.prior.concentration()), location));
  } else {
    return random_map<Family>(stream, arc);
  }
}

/// A sheaf with the edge weights of another sheaf and the maps map_of(arc).
template <class Family, class MapOf>
[[nodiscard]] CellularSheaf<Family> with_maps(const CellularSheaf<Family>& sheaf, const MapOf& map_of) {
  CellularSheaf<Family> r = sheaf;
  for (Index a = 0; a < r.graph().arc_count(); ++a) r.set_map(a, map_of(a));
  return r;
}
/// Edge e gets both maps of edge π(e), the smaller node's map from the smaller node.
template <class Family>
[[nodiscard]] CellularSheaf<Family> permuted_sheaf(const CellularSheaf<Family>& sheaf, const Stream& stream) {
  const Graph& graph = sheaf.graph();
  std::vector<std::int32_t> other(static_cast<std::size_t>(graph.edge_count()));
  std::iota(other.begin(), other.end(), 0);
  shuffle(other, stream);
  return with_maps(sheaf, [&](Index a) {
    const Index e = graph.edge_of(a), from = graph.forward_arc(other[static_cast<std::size_t>(e)]);
    return sheaf.map(a == graph.forward_arc(e) ? from : graph.reverse(from));
  });
}

/// Losses and accuracy of nodes from the probabilities of several samples. Bayesian models use the mean probabilities;
/// deterministic models use the means of the samples' losses and accuracies.
class NodeLosses {
 public:
  NodeLosses(std::span<const std::int32_t> labels, std::span<const std::int32_t> nodes, bool of_mean)
      : labels_(labels), nodes_(nodes), of_mean_(of_mean), sums_(nodes.size(), 0.0) {}

  void add(const Prediction& prediction) {
    ++count_;
    classes_ = static_cast<std::size_t>(prediction.class_count);
    if (of_mean_) probabilities_.resize(nodes_.size() * classes_, 0.0);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const double* p = prediction.probabilities.data() + static_cast<std::size_t>(nodes_[i]) * classes_;
      if (of_mean_) {
        for (std::size_t c = 0; c < classes_; ++c) probabilities_[i * classes_ + c] += p[c];
      } else {
        sums_[i] += loss_of(p[label(i)]);
        right_ += is_right(p, i) ? 1 : 0;
      }
    }
  }
  /// Makes the losses and the accuracy NaN.
  void add_unknown() { known_ = false; }
  [[nodiscard]] std::vector<double> losses() const {
    std::vector<double> r;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!known_) {
        r.push_back(SheafUse::unknown);
      } else {
        r.push_back(of_mean_ ? loss_of(probabilities_[i * classes_ + label(i)] / count_) : sums_[i] / count_);
      }
    }
    return r;
  }
  [[nodiscard]] double accuracy() const {
    if (!known_) return SheafUse::unknown;
    const double n = static_cast<double>(nodes_.size());
    if (!of_mean_) return right_ / (n * count_);
    double right = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) right += is_right(probabilities_.data() + i * classes_, i) ? 1 : 0;
    return right / n;
  }

 private:
  [[nodiscard]] static double loss_of(double probability) { return -std::log(std::max(probability, 1e-30)); }
  [[nodiscard]] std::size_t label(std::size_t i) const {
    return static_cast<std::size_t>(labels_[static_cast<std::size_t>(nodes_[i])]);
  }
  [[nodiscard]] bool is_right(const double* p, std::size_t i) const {
    return static_cast<std::size_t>(std::max_element(p, p + classes_) - p) == label(i);
  }

  std::span<const std::int32_t> labels_, nodes_;
  bool of_mean_, known_ = true;
  std::size_t classes_ = 0;
  double count_ = 0, right_ = 0;
  std::vector<double> sums_, probabilities_;
};

[[nodiscard]] inline double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
[[nodiscard]] inline ChangedSheafLoss compare_losses(const NodeLosses& with_changed, const std::vector<double>& own) {
  const std::vector<double> changed = with_changed.losses();
  std::vector<double> rises;
  for (std::size_t i = 0; i < own.size(); ++i) rises.push_back(changed[i] - own[i]);
  ChangedSheafLoss r;
  r.loss = mean_of(changed);
  r.rise = mean_of(rises);
  const double n = static_cast<double>(rises.size());
  double squares = 0;
  for (const double rise : rises) squares += (rise - r.rise) * (rise - r.rise);
  if (n > 1) r.standard_error = std::sqrt(squares / (n - 1) / n);
  r.accuracy = with_changed.accuracy();
  return r;
}

inline void fill_score(const NodeLosses& own, const NodeLosses& permuted, const NodeLosses& prior,
                       const NodeLosses& identity, SheafUse& use) {
  const std::vector<double> before = own.losses();
  use.nodes = static_cast<Index>(before.size());
  use.loss = mean_of(before);
  use.accuracy = own.accuracy();
  use.permuted = compare_losses(permuted, before);
  use.prior = compare_losses(prior, before);
  use.identity = compare_losses(identity, before);
}

/// Fills in the score. \param network  after begin(pass) and, for a model without a posterior, a draw
template <class Model>
void score_sheaf(const Network<Model>& network, const ForwardPass<typename Model::Scalar>& pass,
                 const Dataset& data, std::span<const std::int32_t> nodes, const SheafUseOptions& options,
                 SheafUse& use) {
  using Family = typename Model::Family;
  using Sheaves = std::vector<CellularSheaf<Family>>;
  const Model& model = network.model();
  const PredictOptions as_it_is{.samples = options.samples,
                                .seed = options.seed,
                                .epoch = options.epoch,
                                .threads = options.threads};
  const auto losses = [&] { return NodeLosses(data.labels, nodes, use.bayesian); };
  NodeLosses own = losses(), permuted = losses(), prior = losses(), identity = losses();
  own.add(predict(model, data, as_it_is));
  const auto predict_with = [&](Sheaves sheaves, NodeLosses& to) {
    const auto changed = with_sheaves(model, GivenMaps<Family>(std::move(sheaves)));
    try {
      to.add(predict(changed, data, {.samples = 1, .threads = options.threads}));
    } catch (const std::invalid_argument&) {  // outputs are not finite; continue, so that the trained model is not lost
      to.add_unknown();
    } catch (const std::runtime_error&) {  // a flow took too many steps
      to.add_unknown();
    }
  };
  Sheaves sheaves;  // the model's own
  for (Index k = 0; k < options.samples; ++k) {
    const Index count = network.sheaf_source().stack().count();
    if (use.bayesian) sheaves.clear();
    for (Index l = static_cast<Index>(sheaves.size()); l < count; ++l) {
      sheaves.push_back(sheaf_of_pass(network, pass, k, l));
    }
    const auto predict_changed = [&](Index part, NodeLosses& to, const auto& change) {
      Sheaves changed;
      for (Index l = 0; l < count; ++l) {
        const Stream stream{options.seed, Purpose::user, options.epoch, static_cast<std::uint32_t>(2 * l + part),
                            static_cast<std::uint32_t>(k)};
        changed.push_back(change(sheaves[static_cast<std::size_t>(l)], stream));
      }
      predict_with(std::move(changed), to);
    };
    using Sheaf = CellularSheaf<Family>;
    predict_changed(0, permuted,
                    [](const Sheaf& sheaf, const Stream& stream) { return permuted_sheaf(sheaf, stream); });
    predict_changed(1, prior, [&](const Sheaf& sheaf, const Stream& stream) {
      return with_maps(sheaf, [&](Index a) {
        return prior_map(model.posterior(), stream, static_cast<std::uint32_t>(a));
      });
    });
    if (k > 0) continue;
    predict_changed(0, identity, [](const Sheaf& sheaf, const Stream&) {
      const Sheaf plain(sheaf.shared_graph());
      return with_maps(sheaf, [&](Index a) { return plain.map(a); });
    });
  }
  fill_score(own, permuted, prior, identity, use);
}

}  // namespace detail

/// Figures of a model's sheaf on a dataset, and the score on nodes outside the training nodes, such as the validation nodes.
/// See the file comment. There are no figures for models or graphs without edges and for fixed maps (Identity). Without
/// labelled nodes there is no score.
///
/// \throws std::invalid_argument  an option out of range, a node number out of range, or as predict()
template <HasIncidentMaps Model>
[[nodiscard]] SheafUse sheaf_use(const Model& model, const Dataset& data, std::span<const std::int32_t> nodes,
                                 const SheafUseOptions& options = {}) {
  using Family = typename Model::Family;
  require_between("samples", options.samples, 1, 32768);
  const std::vector<std::int32_t> labelled = labelled_nodes(data.labels, nodes);
  SheafUse r;
  if constexpr (sheaf::is_learned<Family>) {
    r.bayesian = has_sheaf_posterior<Model>;
    if (!detail::sees_edges(model.options()) || data.graph.edge_count() == 0) return r;
    // Other maps would have entries where stalks have no coordinates.
    if (detail::has_own_stalks(model.options(), Family::stalk_dimension)) return r;
    ForwardPass<typename Model::Scalar> pass;
    pass.seed = options.seed;
    pass.epoch = options.epoch;
    Network<Model> network(model, data.graph, data.features,
                           detail::reading_execution(model, data.graph, options.threads));
    [[maybe_unused]] const auto begun = network.begin(pass);
    detail::TransportFigures<Family> transports;
    if constexpr (has_sheaf_posterior<Model>) {
      if constexpr (Model::Posterior::closed_form_kl) r.kl = network.kl();
      for (NamedMatrix& matrix : detail::parameters_of(network).spread) {
        r.spread.push_back({std::move(matrix.name), detail::sheaf_quantiles(matrix.values)});
      }
      transports.add(detail::mean_sheaf(network));
    } else {
      begun.draw();
      for (Index l = 0; l < network.sheaf_source().stack().count(); ++l) {
        transports.add(detail::sheaf_of_pass(network, pass, 0, l));
      }
    }
    r.turn = detail::sheaf_quantiles(transports.degrees);
    if (transports.entries > 0) r.negative = transports.negative / transports.entries;
    if (!labelled.empty()) detail::score_sheaf(network, pass, data, labelled, options, r);
  }
  return r;
}

}  // namespace sheafnn
