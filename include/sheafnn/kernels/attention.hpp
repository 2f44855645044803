/// \file
/// Attention of a node over its neighbours and itself, of one head, and the derivative:
///
///     e = LeakyReLU_0.2(s + t),   share = softmax of e + σ ε over the scores of a node      (math: "Sheaf attention" (3.46))
///     ē = share (b̄ − Σ share b̄) + λ e,   the derivative of s + t is ē LeakyReLU′           (math: "Sheaf attention" (3.48))
///
/// where b̄ is the derivative of a share, and λ the weight of the KL term in the objective. An executor numbers
/// scores in its own way and provides the loop over the scores of a node.
///
/// Unchecked: indices of scores, and the sizes of arrays.
#pragma once

#include <cmath>

#include "sheafnn/core/config.hpp"

namespace sheafnn::kernels {

/// LeakyReLU_0.2.
template <class S>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S attention_score(S sum) {
  return sum > S(0) ? sum : S(0.2) * sum;
}
/// The derivative of the sum from the derivative of the score, which has the sign of the sum.
template <class S>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S attention_score_bar(S score, S bar) {
  return score > S(0) ? bar : S(0.2) * bar;
}
/// KL(N(e, σ²) ‖ N(0, 1)), the mean over scores with this mean of e².
[[nodiscard]] SHEAFNN_HD inline double attention_kl(double mean_square, double scale) {
  using std::log;
  return 0.5 * (mean_square + scale * scale - 1) - log(scale);
}
/// Its derivative in log σ.
template <class S>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S attention_kl_scale_bar(S scale) {
  return scale * scale - S(1);
}

/// What the derivative of the attention of a node leaves: s̄, and the derivative of log σ without the KL term's part.
template <class S>
struct AttentionSums {
  S key_bar, scale_bar;
};

/// One of several heads at the nodes of a graph. Arrays have as many values per score as there are heads.
template <class S>
struct AttentionHead {
  Index heads, number;
  S* score;        ///< e
  S* share;        ///< of attend(); backward() leaves the derivative of s + t
  const S* noise;  ///< ε; null: none
  S scale;         ///< σ

  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S& share_at(Index i) const { return share[i * heads + number]; }
  /// A head's part of Λ, and of its derivative.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S part() const { return S(1) / static_cast<S>(heads); }

  /// \param for_scores  for_scores(use) calls use(i) for the scores i of a node
  /// \param own         one of them
  template <class ForScores>
  SHEAFNN_HD SHEAFNN_INLINE void attend(const ForScores& for_scores, Index own) const {
    using std::exp;
    S most = noisy(own), sum = S(0);
    for_scores([&](Index i) {
      const S value = noisy(i);
      if (most < value) most = value;
    });
    for_scores([&](Index i) {
      S& of = share_at(i);
      of = exp(noisy(i) - most);
      sum += of;
    });
    for_scores([&](Index i) { share_at(i) /= sum; });
  }
  /// \param bar       of Λ, one value per score
  /// \param wanted    did attend() run for the node?
  /// \param kl_share  λ
  template <class ForScores>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE AttentionSums<S> backward(const ForScores& for_scores, const S* bar,
                                                                    bool wanted, S kl_share) const {
    S mean = S(0);
    if (wanted) for_scores([&](Index i) { mean += share_at(i) * part() * bar[i]; });
    AttentionSums<S> sums{S(0), S(0)};
    for_scores([&](Index i) {
      const Index at = i * heads + number;
      S e_bar = wanted ? share[at] * (part() * bar[i] - mean) : S(0);
      if (noise != nullptr) {
        sums.scale_bar += e_bar * noise[at] * scale;
        e_bar += kl_share * score[at];
      }
      share[at] = attention_score_bar(score[at], e_bar);
      sums.key_bar += share[at];
    });
    return sums;
  }

 private:
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S noisy(Index i) const {
    const Index at = i * heads + number;
    return noise != nullptr ? score[at] + scale * noise[at] : score[at];
  }
};

}  // namespace sheafnn::kernels
