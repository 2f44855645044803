/// \file
/// Expectation maximisation for finite mixtures of components of any kind (Dempster, Laird, Rubin, J. R. Stat. Soc. B 39,
/// 1977), with starting responsibilities from centres that are far from each other.
///
/// E: r_ik = w_k f_k(p_i)/Σ_j w_j f_j(p_i). M: w_k = Σ_i v_i r_ik with the samples' weights v, and f_k is fitted with the
/// weights v_i r_ik. A fit with a smaller Σ_i v_i r_ik log f_k than before is rejected. The likelihood Σ v_i log Σ_k w_k f_k
/// grows in each iteration, except in one that drops a component.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/option.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/rotation/mixture.hpp"

namespace sheafnn::rotation {

/// How mixtures are fitted.
struct MixtureOptions {
  int components = 2;
  int starts = 4;
  int max_iterations = 500;
  double tolerance = 1e-7;
  std::uint64_t seed = 0;
};

/// Declares the options: see core/option.hpp. Takes any options.
template <class Visit, OptionsOf<MixtureOptions>... Options>
void for_each_option(const Visit& visit, Options&... options) {
  using Range = OptionRange;
  visit({.key = "components", .summary = "components at the start", .range = Range::between(1, 1000)},
        options.components...);
  visit({.key = "starts",
         .summary = "number of fits from different centres; the likeliest continues after 20 iterations",
         .range = Range::between(1, 10000)},
        options.starts...);
  visit({.key = "max_iterations", .summary = "most iterations", .range = Range::between(1, 1000000)},
        options.max_iterations...);
  visit({.key = "tolerance",
         .summary = "a fit ends where an iteration adds less to the mean log-likelihood",
         .range = Range::between(0, 1)},
        options.tolerance...);
  visit({.key = "seed", .summary = "seed of the centres"}, options.seed...);
}

}  // namespace sheafnn::rotation

namespace sheafnn::detail {

/// The components of a mixture while they are fitted.
class MixtureComponents {
 public:
  virtual ~MixtureComponents() = default;
  /// out[i] = log f_k of sample i.
  virtual void log_densities(std::size_t k, std::span<double> out) const = 0;
  /// Fits a candidate for component k to weighted samples; says whether these have a fit.
  virtual bool fit_candidate(std::span<const double> weights) = 0;
  /// out[i] = log f of the candidate.
  virtual void candidate_log_densities(std::span<double> out) const = 0;
  /// Makes the candidate component k, which is one of the current components or the next one.
  virtual void take_candidate(std::size_t k) = 0;
  virtual void drop(std::size_t k) = 0;
};

/// What a fit has besides its components, which are in MixtureComponents.
struct MixtureEstimate {
  std::vector<double> shares;            ///< w_k
  std::vector<double> responsibilities;  ///< r_ik, sample by sample
  std::vector<double> log_likelihoods;   ///< Σ v log f after each iteration
  bool converged = false;
};

/// n × K responsibilities from squared distances to K centres. Each start sample is the next centre with a probability
/// proportional to its weight and its squared distance from the centres before. r_ik is proportional to
/// 1/(d_ik² + average of the samples' least d²). Source: Arthur, Vassilvitskii, "k-means++", SODA 2007.
///
/// \param squared_distance  of samples i and j
template <class Distance>
[[nodiscard]] std::vector<double> starting_responsibilities(std::span<const double> weights,
                                                            std::size_t components, std::uint64_t seed,
                                                            std::uint32_t start,
                                                            const Distance& squared_distance) {
  const std::size_t count = weights.size();
  const Stream stream{.seed = seed, .epoch = start};
  std::vector<double> distances(count * components), least(count, 1.0);
  for (std::size_t k = 0; k < components; ++k) {
    double total = 0;
    for (std::size_t i = 0; i < count; ++i) total += weights[i] * least[i];
    const auto words = stream.words(static_cast<std::uint32_t>(k), 0);
    // Samples that all lie on centres leave the weights alone.
    const bool spread = total > 0;
    double rest = random::fine_uniform(words.word[0], words.word[1]) * (spread ? total : 1.0);
    std::size_t centre = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double mass = weights[i] * (spread ? least[i] : 1.0);
      if (mass > 0) centre = i;
      if (rest < mass) break;
      rest -= mass;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const double d = squared_distance(i, centre);
      distances[i * components + k] = d;
      least[i] = k == 0 ? d : std::min(least[i], d);
    }
  }
  double average = std::numeric_limits<double>::min();
  for (std::size_t i = 0; i < count; ++i) average += weights[i] * least[i];
  for (std::size_t i = 0; i < count; ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < components; ++k) {
      double& r = distances[i * components + k];
      sum += r = 1 / (r + average);
    }
    for (std::size_t k = 0; k < components; ++k) distances[i * components + k] /= sum;
  }
  return distances;
}

/// Expectation maximisation from the responsibilities of an estimate, until it has gone on for `most_iterations` or converged.
/// A component is dropped where its weighted samples have no fit, or count as less than one of equal weight.
///
/// \param weights    v, of sum 1 \param effective  how many samples of equal weight they stand for
/// \param tolerance  see MixtureOptions
/// \param r          without shares and likelihoods at the start, or what an earlier call has left
/// \param model      its components, empty at the start
/// \throws std::invalid_argument  no component is left
inline void maximise_expectation(std::span<const double> weights, double effective, int most_iterations,
                                 double tolerance, MixtureEstimate& r, MixtureComponents& model) {
  const std::size_t count = weights.size();
  std::size_t components = r.responsibilities.size() / count;
  std::vector<double> part(count), logs(count), candidate(count);
  std::vector<double> joint;  // log w_k f_k
  for (int iteration = 0; iteration < most_iterations && !r.converged; ++iteration) {
    const bool first = r.log_likelihoods.empty();
    r.shares.clear();
    joint.clear();
    bool dropped = false;
    for (std::size_t k = 0, column = 0; column < components; ++column) {
      double share = 0;
      for (std::size_t i = 0; i < count; ++i) {
        part[i] = weights[i] * r.responsibilities[i * components + column];
        share += part[i];
      }
      if (share * effective < 1 || !model.fit_candidate(part)) {
        if (!first) model.drop(k);
        dropped = true;
        continue;
      }
      model.candidate_log_densities(candidate);
      bool take = true;
      if (!first) {
        model.log_densities(k, logs);
        double growth = 0;
        for (std::size_t i = 0; i < count; ++i) {
          if (part[i] > 0) growth += part[i] * (candidate[i] - logs[i]);
        }
        take = growth > 0;
      }
      if (take) {
        model.take_candidate(k);
        logs = candidate;
      }
      for (std::size_t i = 0; i < count; ++i) joint.push_back(std::log(share) + logs[i]);
      r.shares.push_back(share);
      ++k;
    }
    components = r.shares.size();
    require(components > 0, "fit_mixture: samples", "a set of which no component has a fit",
            "fewer components or other samples are needed");
    double total = 0;
    for (const double share : r.shares) total += share;
    for (double& share : r.shares) share /= total;
    r.responsibilities.assign(count * components, 0);
    double likelihood = 0;
    std::vector<double> row(components);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < components; ++k) row[k] = joint[k * count + i];
      const double log_total = log_sum_exp(row);
      for (std::size_t k = 0; k < components; ++k) {
        r.responsibilities[i * components + k] =
            std::isfinite(log_total) ? std::exp(row[k] - log_total) : r.shares[k];
      }
      if (weights[i] > 0) likelihood += weights[i] * (log_total - std::log(total));
    }
    r.converged = !dropped && !first && !(likelihood - r.log_likelihoods.back() > tolerance);
    r.log_likelihoods.push_back(likelihood);
  }
}

}  // namespace sheafnn::detail
