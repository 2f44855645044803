/// \file
/// Uncertainty from several sampled class distributions per node: entropy, epistemic variance, mutual information.
///
/// Let p_k be the sampled distributions of a node and p̄ their mean. The predictive entropy is H[p̄], and the mutual
/// information H[p̄] − mean H[p_k]. The epistemic variance is the mean over classes of the variance over samples. Ensembles of
/// models add theirs. Source: math: "Uncertainty".
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/uncertainty/metrics.hpp"

namespace sheafnn::uncertainty {

/// Entropy −Σ p log p of a distribution in nats; terms with p = 0 are 0. Takes any numbers; what is not positive counts
/// as 0.
[[nodiscard]] inline double predictive_entropy(std::span<const double> p) {
  double entropy = 0;
  for (const double x : p) {
    if (x > 0) entropy -= x * std::log(x);
  }
  return std::max(entropy, 0.0);
}

/// What the samples say about every node.
struct SampledPrediction {
  std::vector<double> probabilities;       ///< mean over the samples, n × C, row-major
  std::vector<double> entropy;             ///< H[p̄], n, in [0, log C]
  std::vector<double> epistemic_variance;  ///< n, ≥ 0; variances divide by the number of samples
  std::vector<double> mutual_information;  ///< n, in [0, log C]
};

}  // namespace sheafnn::uncertainty

namespace sheafnn::detail {

/// \throws std::invalid_argument  negative n, no class, or too many probabilities to be counted
inline void check_prediction_sizes(Index node_count, Index class_count) {
  require(node_count >= 0, "node_count", node_count, "must not be negative");
  require(class_count >= 1, "class_count", class_count, "must be at least 1");
  constexpr Index most = std::numeric_limits<Index>::max() / static_cast<Index>(sizeof(double));
  require(node_count <= most / class_count, "node_count", node_count,
          concat("nodes * classes must be at most ", most, "; there are ", class_count, " classes"));
}

}  // namespace sheafnn::detail

namespace sheafnn::uncertainty {

/// Collects sampled distributions one after the other, so that only one needs to be in memory.
class SampledPredictionBuilder {
 public:
  /// \throws std::invalid_argument  negative n, no class, or too many probabilities to be counted
  SampledPredictionBuilder(Index node_count, Index class_count) : nodes_(node_count), classes_(class_count) {
    detail::check_prediction_sizes(node_count, class_count);
    mean_.assign(static_cast<std::size_t>(nodes_ * classes_), 0.0);
    squares_ = mean_;
    entropy_.assign(static_cast<std::size_t>(nodes_), 0.0);
  }

  /// Adds one sample: n × C probabilities, row-major, with `stride` values from row to row. Unchecked: that they are
  /// there.
  ///
  /// \throws std::invalid_argument  a probability outside [0, 1] or NaN, a row that does not sum to 1 up to 0.001, or a
  ///                                stride below C. Nothing is added then
  template <class S>
  void add(const S* probabilities, Index stride) {
    require(stride >= classes_, "stride", stride, "must be at least the number of classes");
    for (Index u = 0; u < nodes_; ++u) {
      detail::check_distribution("probabilities", classes_, u,
                                 [&](Index c) { return static_cast<double>(probabilities[u * stride + c]); });
    }
    ++samples_;
    const double share = 1.0 / static_cast<double>(samples_);
    for (Index u = 0; u < nodes_; ++u) {
      double entropy = 0;
      for (Index c = 0; c < classes_; ++c) {
        const double p = static_cast<double>(probabilities[u * stride + c]);
        if (p > 0) entropy -= p * std::log(p);
        // Welford's update keeps the digits of small variances.
        const std::size_t i = static_cast<std::size_t>(u * classes_ + c);
        const double difference = p - mean_[i];
        mean_[i] += difference * share;
        squares_[i] += difference * (p - mean_[i]);
      }
      entropy_[static_cast<std::size_t>(u)] += entropy;
    }
  }
  /// As above, one row after the other.
  template <class S>
  void add(const S* probabilities) {
    add(probabilities, classes_);
  }

  [[nodiscard]] Index sample_count() const noexcept { return samples_; }

  /// \throws std::invalid_argument  no sample was added
  [[nodiscard]] SampledPrediction result() const {
    require(samples_ > 0, "samples", samples_, "at least one is needed");
    const double count = static_cast<double>(samples_);
    SampledPrediction r;
    r.probabilities = mean_;
    for (Index u = 0; u < nodes_; ++u) {
      const std::size_t row = static_cast<std::size_t>(u * classes_);
      const std::size_t classes = static_cast<std::size_t>(classes_);
      double squares = 0;
      for (std::size_t c = 0; c < classes; ++c) squares += squares_[row + c];
      r.entropy.push_back(predictive_entropy(std::span(mean_).subspan(row, classes)));
      r.epistemic_variance.push_back(squares / (count * static_cast<double>(classes_)));
      // 0 of one sample, and not negative by concavity of the entropy; rounding must not say otherwise.
      r.mutual_information.push_back(
          samples_ == 1 ? 0.0 : std::max(0.0, r.entropy.back() - entropy_[static_cast<std::size_t>(u)] / count));
    }
    return r;
  }

 private:
  Index nodes_;
  Index classes_;
  Index samples_ = 0;
  std::vector<double> mean_;
  std::vector<double> squares_;  // sums of squared deviations from the mean
  std::vector<double> entropy_;  // sums of the samples' entropies
};

/// The same from all samples at once: K × n × C probabilities, row-major.
///
/// \throws std::invalid_argument  a size that does not match, no sample, a probability outside [0, 1], or a row that does
///                                not sum to 1
[[nodiscard]] inline SampledPrediction combine_samples(std::span<const double> samples, Index sample_count,
                                                       Index node_count, Index class_count) {
  detail::check_prediction_sizes(node_count, class_count);
  require(sample_count >= 1, "sample_count", sample_count, "must be at least 1");
  detail::require_product("samples", samples.size(), "samples * nodes * classes",
                          {sample_count, node_count, class_count});
  SampledPredictionBuilder builder(node_count, class_count);
  for (Index k = 0; k < sample_count; ++k) builder.add(samples.data() + k * node_count * class_count);
  return builder.result();
}

/// What an ensemble says: the same as one prediction from the samples of all its members, each of which has as many. The
/// mean entropy of a member's samples is H[p̄] minus its mutual information, the variance that within the members plus that
/// between them.
///
/// \param class_count  C
/// \throws std::invalid_argument  no member, or members of different sizes
[[nodiscard]] inline SampledPrediction combine_members(std::span<const SampledPrediction> members,
                                                       Index class_count) {
  require(!members.empty(), "members", 0, "at least one is needed");
  require(class_count >= 1, "class_count", class_count, "must be at least 1");
  const std::size_t nodes = members[0].entropy.size();
  detail::check_prediction_sizes(static_cast<Index>(nodes), class_count);
  for (std::size_t k = 0; k < members.size(); ++k) {
    const SampledPrediction& member = members[k];
    const ArgumentName name({}, "members", k);
    for (const std::vector<double>* values :
         {&member.entropy, &member.epistemic_variance, &member.mutual_information}) {
      require(values->size() == nodes, name, values->size(), detail::concat("expected ", nodes, " nodes"));
    }
    require(member.probabilities.size() == nodes * static_cast<std::size_t>(class_count), name,
            member.probabilities.size(), detail::concat("expected nodes * classes = ", nodes, " * ", class_count));
  }
  SampledPredictionBuilder builder(static_cast<Index>(nodes), class_count);
  for (const SampledPrediction& member : members) builder.add(member.probabilities.data());
  SampledPrediction r = builder.result();
  const double share = 1 / static_cast<double>(members.size());
  for (std::size_t u = 0; u < nodes; ++u) {
    double within = 0;  // mean entropy of all samples
    for (const SampledPrediction& member : members) {
      within += share * (member.entropy[u] - member.mutual_information[u]);
      r.epistemic_variance[u] += share * member.epistemic_variance[u];
    }
    r.mutual_information[u] = std::max(0.0, r.entropy[u] - within);
  }
  return r;
}

}  // namespace sheafnn::uncertainty
