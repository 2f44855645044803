/// \file
/// AroundGiven: distributions of restriction maps whose centres are given, such as a connection or the relations of a graph:
///
///     orthogonal maps   F_a = G_a F⁰_a,   G_a ~ C(M_a, κ_a),  M_a = I or learned
///     other maps        F_a = F⁰_a + G_a,  G_a ~ N(μ_a, σ_a²), μ_a = 0 or learned
///
/// The deviation G has one of the library's posteriors, and its prior: the uniform distribution, or N(0, s₀² I), that is
/// N(F⁰, s₀² I) of F. Rotations G keep det F⁰. Source: math: "Around given maps".
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/posterior/cayley.hpp"
#include "sheafnn/posterior/given_maps.hpp"
#include "sheafnn/posterior/normal.hpp"
#include "sheafnn/posterior/priors.hpp"

namespace sheafnn {

/// What determines the distribution of the map of an incident pair.
enum class DeviationSource : std::uint8_t {
  arcs,            ///< a learner of spreads reads both ends; the centre is the given map
  arcs_and_means,  ///< it predicts a mean deviation as well
  labels           ///< one spread for all edges with the same label, a parameter; the centre is the given map
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(DeviationSource) { return std::array{"arcs", "arcs-and-means", "labels"}; }

/// Labels of edges, 0 … count − 1.
struct EdgeLabels {
  std::vector<std::int32_t> of_edge;  ///< m
  Index count = 0;

  friend bool operator==(const EdgeLabels&, const EdgeLabels&) = default;
};

namespace detail {

/// F from a deviation G and the given map F⁰, and back; G's derivative from the derivative of F. Takes any maps.
/// Source: math: "Around given maps" (8.4).
template <class Family>
struct Deviated {
  template <class Map>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE static Map map(const Map& deviation, const Map& centre) {
    if constexpr (sheaf::is_orthogonal<Family>) {
      return math::multiply(deviation, centre);
    } else {
      return deviation + centre;
    }
  }
  template <class Map>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE static Map deviation(const Map& map, const Map& centre) {
    if constexpr (sheaf::is_orthogonal<Family>) {
      return math::multiply_nt(map, centre);
    } else {
      return map - centre;
    }
  }
  template <class Map>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE static Map deviation_bar(const Map& map_bar, const Map& centre) {
    if constexpr (sheaf::is_orthogonal<Family>) {
      return math::multiply_nt(map_bar, centre);
    } else {
      return map_bar;
    }
  }
};

/// The posterior of the deviation from a given map.
template <class Family>
struct DeviationPosterior {
  static_assert(sheaf::coordinates_are_entries<Family>,
                "given maps have deviations of orthogonal maps, or of maps whose "
                "coordinates are their entries");
  using type = NormalPosterior<Family, NormalPrior<Family::coordinate_count>>;
};
template <class Family>
  requires sheaf::is_orthogonal<Family>
struct DeviationPosterior<Family> {
  using type = CayleyPosterior<Family>;
};

}  // namespace detail

/// A posterior whose location may be the one that changes no map: I for rotations, 0 for other maps. Unchecked: see
/// posterior/sheaf_posterior.hpp.
template <SheafPosterior Base>
struct Deviation : Base {
  bool learned_mean = false;  ///< otherwise the raw outputs of the mean are not read

  template <class T>
  SHEAFNN_HD void activate(const T* raw, T* parameters) const {
    Base::activate(raw, parameters);
    if (learned_mean) return;
    if constexpr (sheaf::is_orthogonal<typename Base::family>) {
      SHEAFNN_UNROLL for (int k = 0; k < Base::D * Base::D; ++k) parameters[k] = T(k % (Base::D + 1) == 0 ? 1 : 0);
    } else {
      SHEAFNN_UNROLL for (int k = 0; k < Base::mean_size; ++k) parameters[k] = T(0);
    }
  }
  template <class T>
  SHEAFNN_HD void activate_backward(const T* raw, const T* parameters, const T* gradient, T* raw_bar) const {
    Base::activate_backward(raw, parameters, gradient, raw_bar);
    if (learned_mean) return;
    SHEAFNN_UNROLL for (int k = 0; k < Base::mean_size; ++k) raw_bar[k] = T(0);
  }

  friend bool operator==(const Deviation&, const Deviation&) = default;
};

/// See the file comment.
template <RestrictionMapFamily Family>
class AroundGiven : public Deviation<typename detail::DeviationPosterior<Family>::type> {
 public:
  using Draws = Deviation<typename detail::DeviationPosterior<Family>::type>;
  static constexpr std::string_view name = "around-given";

  /// It is empty, and no model can be built from it.
  AroundGiven() = default;
  /// \param centre  one sheaf, for all layers
  /// \param source  arcs or arcs_and_means
  /// \throws std::invalid_argument  labels, which have to be given
  explicit AroundGiven(CellularSheaf<Family> centre, DeviationSource source = DeviationSource::arcs)
      : AroundGiven(GivenMaps<Family>(std::move(centre)), source, {}) {}
  /// With one spread per label.
  ///
  /// \throws std::invalid_argument  labels of another number of edges, or out of range
  AroundGiven(CellularSheaf<Family> centre, EdgeLabels labels)
      : AroundGiven(GivenMaps<Family>(std::move(centre)), DeviationSource::labels, std::move(labels)) {}
  /// \throws std::invalid_argument  as above, or not one sheaf
  AroundGiven(GivenMaps<Family> centre, DeviationSource source, EdgeLabels labels)
      : centre_(std::move(centre)),
        source_(source),
        labels_(std::make_shared<const EdgeLabels>(std::move(labels))) {
    centre_.check_count(1);
    this->learned_mean = source == DeviationSource::arcs_and_means;
    const EdgeLabels& of = *labels_;
    if (source != DeviationSource::labels) {
      require(of.of_edge.empty(), "labels", of.of_edge.size(),
              "a learner predicts the spreads, and no labels are read");
      return;
    }
    const Index m = centre_[0].graph().edge_count();
    require(static_cast<Index>(of.of_edge.size()) == m, "labels", of.of_edge.size(),
            detail::concat("expected one for each of ", m, " edges"));
    require(of.count >= 1, "number of labels", of.count, "must be at least 1");
    for (std::size_t e = 0; e < of.of_edge.size(); ++e) {
      require(of.of_edge[e] >= 0 && of.of_edge[e] < of.count, ArgumentName({}, "labels", e), of.of_edge[e],
              detail::concat("must be between 0 and ", of.count - 1));
    }
  }

  [[nodiscard]] const GivenMaps<Family>& centre() const noexcept { return centre_; }
  [[nodiscard]] DeviationSource source() const noexcept { return source_; }
  /// The labels of the edges; empty unless spreads depend on labels.
  [[nodiscard]] const EdgeLabels& labels() const noexcept {
    static const EdgeLabels none;
    return labels_ == nullptr ? none : *labels_;
  }
  /// Equal distributions around equal maps? Takes any posteriors.
  [[nodiscard]] friend bool operator==(const AroundGiven& a, const AroundGiven& b) {
    return static_cast<const Draws&>(a) == static_cast<const Draws&>(b) && a.source_ == b.source_ &&
           a.centre_ == b.centre_ && a.labels() == b.labels();
  }
  /// Raw outputs of the mean that a learner predicts for an incident pair.
  [[nodiscard]] Index mean_outputs() const noexcept { return this->learned_mean ? Draws::mean_size : 0; }

 private:
  GivenMaps<Family> centre_;
  DeviationSource source_ = DeviationSource::arcs;
  std::shared_ptr<const EdgeLabels> labels_;
};

/// A posterior around given maps.
template <class Q>
inline constexpr bool is_around_given = false;
template <class Family>
inline constexpr bool is_around_given<AroundGiven<Family>> = true;

namespace detail {

/// Raw outputs per incident pair, and labels of edges.
struct RawSizes {
  Index mean = 0, spread = 0, labels = 0;
};
template <class Posterior>
[[nodiscard]] RawSizes raw_sizes(const Posterior& posterior) {
  if constexpr (is_around_given<Posterior>) {
    return {posterior.mean_outputs(), Posterior::spread_size, posterior.labels().count};
  } else {
    return {Posterior::mean_size, Posterior::spread_size, 0};
  }
}

/// Where the raw spreads of labels start: concentrated, whatever the range of spreads.
[[nodiscard]] constexpr double first_dispersion(SpreadRange spread) {
  return spread == SpreadRange::published ? -3 : 0;
}

/// The distribution from which a model's posterior draws: a small struct for all incident pairs.
template <class Posterior>
struct DrawsOf {
  using type = Posterior;
};
template <class Family>
struct DrawsOf<AroundGiven<Family>> {
  using type = typename AroundGiven<Family>::Draws;
};
/// Does a distribution draw deviations from given maps?
template <class Q>
inline constexpr bool is_deviation = false;
template <class Base>
inline constexpr bool is_deviation<Deviation<Base>> = true;

}  // namespace detail

}  // namespace sheafnn
