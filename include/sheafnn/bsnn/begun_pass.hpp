/// \file
/// The steps of a pass as types, for objectives that average over samples and for your own loops. Each step needs the object
/// that the previous step returned.
///
///     const auto pass = network.begin({.epoch = epoch, .training = true});    // BegunPass: H and Q(F | H)
///     auto backward = pass.begin_backward({.kl_weight = 1e-3, .samples = 2});  // BackwardPass
///     for (Index k = 0; k < 2; ++k) {
///       const auto sample = pass.draw(k);    // DrawnSample: F_k ~ Q, and the outputs Y
///       …                                    // outputs_bar: derivative of the loss at sample.view()
///       backward.add(sample, outputs_bar);
///     }
///     const double kl = backward.finish();   // completes network.gradient()
///
/// These objects refer to the network, which holds one pass, one sample and one backward pass at a time. A new one ends the
/// previous one of its kind; begin() ends all three, and add() ends its sample. An object that has ended throws
/// std::logic_error.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "sheafnn/bsnn/forward_pass.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/views.hpp"

namespace sheafnn {

namespace detail {

/// Calls the steps of a network. Networks make it a friend.
struct PassSteps;

/// Counts the passes, draws and backward passes of a network; each object of this file remembers its count.
struct PassNumbers {
  std::uint64_t pass = 0, draw = 0, backward = 0;
};

}  // namespace detail

/// A sample whose sheaves have been drawn.
///
/// \tparam View  MatrixView<S>: the outputs Y; FeatureView<const S>: X_{L+1}
template <class View>
class DrawnSample {
 public:
  /// |nodes| rows, valid until the next draw or pass. A loss may overwrite outputs.
  [[nodiscard]] const View& view() const noexcept { return view_; }

 private:
  friend struct detail::PassSteps;
  DrawnSample(const View& view, std::uint64_t number) : view_(view), number_(number) {}
  View view_;
  std::uint64_t number_;
};

template <class N, bool FromEmbedding = false>
class BegunPass;

/// The backward pass of a begun pass.
template <class N, bool FromEmbedding = false>
class BackwardPass {
 public:
  using S = typename N::S;

  /// Adds derivatives of layer weights, of Q's parameters and of H, from the derivative of a sample's outputs.
  ///
  /// \throws std::invalid_argument  outputs_bar of another shape
  /// \throws std::logic_error       the sample, the pass or the backward pass has ended
  void add(const DrawnSample<MatrixView<S>>& sample, const MatrixView<const S>& outputs_bar);
  /// The same from the derivative of X_{L+1}, n × d' × f at the nodes of the sample; it may be network.features_bar().
  ///
  /// \param sheaf_begun  for networks with a sheaf_source(): whether a step after the layers has read the last layer's
  ///                     sheaf and has already written to sheaf_source().gradient()
  /// \throws  as above
  void add(const DrawnSample<FeatureView<const S>>& sample, const FeatureView<const S>& features_bar,
           bool sheaf_begun = false);
  /// Completes gradient() from these sums.
  ///
  /// \returns the KL term per variable, plus the KL terms of variables that layers draw themselves
  /// \throws std::logic_error  the pass or the backward pass has ended, or nothing was added
  double finish() requires(!FromEmbedding);
  /// The same after begin(pass, embedding), and computes the derivative of the embeddings.
  ///
  /// \param embedding_bar  n × h, overwritten
  /// \throws std::logic_error       as above
  /// \throws std::invalid_argument  embedding_bar of another shape
  double finish(const MatrixView<S>& embedding_bar) requires FromEmbedding;

 private:
  friend class BegunPass<N, FromEmbedding>;
  BackwardPass(N& network, std::uint64_t pass, std::uint64_t number)
      : network_(&network), pass_(pass), number_(number) {}
  N* network_;
  std::uint64_t pass_, number_;
};

/// A pass that has begun: embeddings and, for Bayesian models, the posterior are computed.
///
/// \tparam FromEmbedding  whether the embeddings came from outside the network
template <class N, bool FromEmbedding>
class BegunPass {
 public:
  using S = typename N::S;

  [[nodiscard]] N& network() const noexcept { return *network_; }
  /// Draws the sheaves of a sample and computes its outputs.
  ///
  /// \throws std::invalid_argument  a sample outside 0 … 32767, or a sample without explicit noise
  /// \throws std::logic_error       the pass has ended
  /// \throws FlowError              for a flow, as FlowLayer::forward()
  DrawnSample<MatrixView<S>> draw(Index sample = 0) const;
  /// Draws the sheaves of a sample and computes X_{L+1} at network().nodes().
  ///
  /// \throws  as draw()
  DrawnSample<FeatureView<const S>> diffuse(Index sample = 0) const;
  /// Draws samples 0 … count − 1, for evaluations, and calls use(outputs) for each. Draws a single sample if nothing is
  /// random.
  ///
  /// \throws std::invalid_argument  count not between 1 and 32768, or more than there is explicit noise for
  /// \throws std::logic_error       the pass has ended
  template <class Use>
  void draw_samples(Index count, const Use& use) const;
  /// Clears gradient() and takes the options of the backward pass.
  ///
  /// \throws std::invalid_argument  options out of range
  /// \throws std::logic_error       the pass has ended, or keeps nothing: neither ForwardPass::training nor keep
  BackwardPass<N, FromEmbedding> begin_backward(const BackwardOptions& options = {}) const;

 private:
  friend struct detail::PassSteps;
  BegunPass(N& network, std::uint64_t number) : network_(&network), number_(number) {}
  N* network_;
  std::uint64_t number_;
};

namespace detail {

struct PassSteps {
  /// Begins a pass whose embeddings the network has computed.
  template <bool FromEmbedding, class N>
  static BegunPass<N, FromEmbedding> begun(N& network) {
    ++network.numbers_.draw;
    return {network, ++network.numbers_.pass};
  }
  template <class N>
  static void check(const N& network, std::uint64_t pass) {
    if (network.numbers_.pass != pass)
      throw std::logic_error("the pass has ended: its network has begun another one");
  }
  template <class N>
  static DrawnSample<MatrixView<typename N::S>> draw(N& network, Index sample) {
    const std::uint64_t number = ++network.numbers_.draw;
    return {network.draw(sample), number};
  }
  template <class N>
  static DrawnSample<FeatureView<const typename N::S>> diffuse(N& network, Index sample) {
    const std::uint64_t number = ++network.numbers_.draw;
    return {network.diffuse(sample), number};
  }
  template <class N, class Use>
  static void draw_samples(N& network, Index count, const Use& use) {
    require_between("samples", count, 1, 32768);
    ++network.numbers_.draw;
    network.draw_all(network.sample_count(count), use);
  }
  template <class N>
  static void check_backward(const N& network, std::uint64_t pass, std::uint64_t backward) {
    check(network, pass);
    if (network.numbers_.backward != backward)
      throw std::logic_error("the backward pass has ended: its network has begun another one");
  }
  template <class N>
  static std::uint64_t begin_backward(N& network, const BackwardOptions& options) {
    network.begin_backward(options);
    return ++network.numbers_.backward;
  }
  template <class N, class Bar>
  static void accumulate(N& network, const Bar& outputs_bar) {
    network.accumulate(outputs_bar);
  }
  template <class N>
  static double finish_backward(N& network) {
    return network.finish_backward();
  }
  template <class N, class View, class... Bars>
  static void add(N& network, const DrawnSample<View>& sample, const Bars&... bars) {
    if (network.numbers_.draw != sample.number_)
      throw std::logic_error("the sample has ended: its network has drawn another one, or has added this one");
    network.accumulate(bars...);
    ++network.numbers_.draw;
  }
  template <class N, class... Bars>
  static double finish(N& network, const Bars&... bars) {
    return network.finish_backward(bars...);
  }
};

}  // namespace detail

template <class N, bool FromEmbedding>
DrawnSample<MatrixView<typename N::S>> BegunPass<N, FromEmbedding>::draw(Index sample) const {
  detail::PassSteps::check(*network_, number_);
  return detail::PassSteps::draw(*network_, sample);
}
template <class N, bool FromEmbedding>
DrawnSample<FeatureView<const typename N::S>> BegunPass<N, FromEmbedding>::diffuse(Index sample) const {
  detail::PassSteps::check(*network_, number_);
  return detail::PassSteps::diffuse(*network_, sample);
}
template <class N, bool FromEmbedding>
template <class Use>
void BegunPass<N, FromEmbedding>::draw_samples(Index count, const Use& use) const {
  detail::PassSteps::check(*network_, number_);
  detail::PassSteps::draw_samples(*network_, count, use);
}
template <class N, bool FromEmbedding>
BackwardPass<N, FromEmbedding> BegunPass<N, FromEmbedding>::begin_backward(const BackwardOptions& options) const {
  detail::PassSteps::check(*network_, number_);
  return {*network_, number_, detail::PassSteps::begin_backward(*network_, options)};
}
template <class N, bool FromEmbedding>
void BackwardPass<N, FromEmbedding>::add(const DrawnSample<MatrixView<S>>& sample,
                                         const MatrixView<const S>& outputs_bar) {
  detail::PassSteps::check_backward(*network_, pass_, number_);
  detail::PassSteps::add(*network_, sample, outputs_bar);
}
template <class N, bool FromEmbedding>
void BackwardPass<N, FromEmbedding>::add(const DrawnSample<FeatureView<const S>>& sample,
                                         const FeatureView<const S>& features_bar, bool sheaf_begun) {
  detail::PassSteps::check_backward(*network_, pass_, number_);
  detail::PassSteps::add(*network_, sample, features_bar, sheaf_begun);
}
template <class N, bool FromEmbedding>
double BackwardPass<N, FromEmbedding>::finish() requires(!FromEmbedding) {
  detail::PassSteps::check_backward(*network_, pass_, number_);
  return detail::PassSteps::finish(*network_);
}
template <class N, bool FromEmbedding>
double BackwardPass<N, FromEmbedding>::finish(const MatrixView<S>& embedding_bar) requires FromEmbedding {
  detail::PassSteps::check_backward(*network_, pass_, number_);
  return detail::PassSteps::finish(*network_, embedding_bar);
}

}  // namespace sheafnn
