/// \file
/// BatchNetwork of cooperative models, CSNN and BCSNN (for one network bsnn/cooperative_network.hpp).
#pragma once

#include <cstdint>
#include <utility>

#include "sheafnn/batch/cooperative_parts.hpp"
#include "sheafnn/batch/network_of_parts.hpp"

namespace sheafnn::batch {

/// See the file comment; it has the interface of batch/network_of_parts.hpp.
template <class Executor, int D, bool Bayesian, class Scalar>
class BatchNetwork<Executor, CooperativeModel<D, Bayesian, Scalar>>
    : public detail::NetworkOfParts<BatchNetwork<Executor, CooperativeModel<D, Bayesian, Scalar>>, Executor,
                                    CooperativeModel<D, Bayesian, Scalar>,
                                    detail::CooperativeNetworkParts<Executor, D, Bayesian, Scalar>> {
  using Base = detail::NetworkOfParts<BatchNetwork, Executor, CooperativeModel<D, Bayesian, Scalar>,
                                      detail::CooperativeNetworkParts<Executor, D, Bayesian, Scalar>>;
  friend Base;

 public:
  using typename Base::Model;
  using S = Scalar;
  using Base::Base;

 protected:
  using Base::executor_, Base::parts_, Base::outside_;
  static constexpr bool takes_embeddings = true;

  [[nodiscard]] detail::CooperativeCall<Executor, S> call(const Pass& pass) {
    return {executor_, parts_.runs(), pass, parts_.view, parts_.right, parts_.scratch};
  }
  /// What the learners of a layer, or the only ones, predict. \param copies  of what they read
  [[nodiscard]] detail::RawNodeMaps<S> raw(std::size_t learner, Index copies) {
    return parts_.learners[learner].raw(parts_.view, copies, parts_.learner_scratch);
  }
  /// out = dropout(in) before a layer; nothing unless `drop`. \param copies  instances that share `in`
  [[nodiscard]] Items<detail::ApplyDropout<S>> dropout_part(bool drop, const Pass& pass, std::size_t layer,
                                                            const S* in, S* out, Index copies = 1) const {
    return detail::dropout_part(drop, parts_.runs(), pass, Purpose::layer_dropout, layer, in, parts_.shape.size(),
                                out, copies);
  }

  /// A pass over what the learners read: all instances, or what is common to a run's.
  [[nodiscard]] Pass read(const Pass& pass) const {
    return parts_.learns_per_layer() ? pass : Pass{pass.runs, 1, pass.training, 0, pass.behind, pass.keep};
  }

  /// H = act(dropout_in(X) W₁ᵀ + b₁) and, where one pair of learners serves all layers, Q(T, S | H).
  void encode(const Pass& pass, bool drop, bool) {
    executor_.launch_together(parts_.right.transpose(parts_.view));
    if (outside_ == nullptr) parts_.encoder->forward(executor_, parts_.runs(), parts_.view, drop);
    if (parts_.learns_per_layer()) return;
    if constexpr (Bayesian) {
      const S* input = this->embedding();
      if (parts_.learner_encoder) {
        parts_.learner_encoder->forward(executor_, parts_.runs(), parts_.view, false);
        input = parts_.learner_encoder->output();
      }
      parts_.learners.front().forward(executor_, parts_.runs(), parts_.view, read(pass), parts_.learner_scratch,
                                      input);
      parts_.posteriors.front().infer(executor_, parts_.batch.runs, raw(0, 1));
    }
  }

  /// X̃_l = dropout(X_l),  X_1 = H;  T, S from learners that read X̃_l, or drawn from Q(T, S | X̃_l) or Q(T, S | H);
  /// X_{l+1} = layer_l(X̃_l; T, S). Returns X_{L+1}.
  [[nodiscard]] const S* diffuse(const Pass& pass, bool drop) {
    const Index size = parts_.shape.size();
    const S *const h = this->embedding(), *x = h;
    const bool spread = pass.copies > 1 && !drop;
    const Items copies{spread ? size : 0, pass.instances(),
                       detail::CopyToInstances<S>{h, size, pass.copies, parts_.spread.data()}};
    const auto dropped = dropout_part(drop, pass, 0, h, parts_.layers.front().dropped_input(), pass.copies);
    if (parts_.learns_per_layer()) {
      executor_.launch_together(copies, dropped);
    } else if constexpr (Bayesian) {
      executor_.launch_together(copies, dropped, parts_.posteriors.front().draw(parts_.runs(), pass));
    }
    if (spread) x = parts_.spread.data();
    for (std::size_t l = 0; l < parts_.layers.size(); ++l) {
      auto& layer = parts_.layers[l];
      const bool last = l + 1 == parts_.layers.size(), normed = !parts_.norms.empty();
      if (drop) x = layer.dropped_input();
      if (parts_.learns_per_layer()) learn(pass, l, x);
      S* next = drop && !last ? parts_.layers[l + 1].dropped_input() : nullptr;
      layer.forward(call(pass), x, drop, normed ? nullptr : next);
      x = layer.output();
      if (!normed) continue;
      parts_.norms[l].forward(executor_, parts_.runs(), pass, parts_.view, x, static_cast<std::uint32_t>(l) + 1,
                              next);
      x = parts_.norms[l].output();
    }
    return x;
  }

  /// The maps of layer l from what its learners read.
  void learn(const Pass& pass, std::size_t l, const S* x) {
    parts_.learners[l].forward(executor_, parts_.runs(), parts_.view, pass, parts_.learner_scratch, x);
    if constexpr (Bayesian) {
      parts_.posteriors[l].infer(executor_, pass.instances(), raw(l, pass.copies));
      executor_.launch_together(parts_.posteriors[l].draw(parts_.runs(), pass));
    } else {
      executor_.launch(2 * parts_.shape.nodes, pass.instances(),
                       detail::PredictNodeMaps<D, S>{raw(l, pass.copies), parts_.layers[l].maps()});
    }
  }

  /// Computes X̄_l, T̄ and S̄ for l = L … 1 from X̄_{L+1}, then H̄ and the derivatives of the learners' encoder.
  template <class Products>
  S* diffuse_backward(const Pass& pass, bool closed_form, bool drop, const Products& of_output) {
    S* x_bar = parts_.x_bar.data();
    detail::LayerProducts<S> pending{};  // of the layer above: they share the first launch of this one
    for (std::size_t l = parts_.layers.size(); l-- > 0;) {
      auto& layer = parts_.layers[l];
      const bool last = l + 1 == parts_.layers.size();
      if (!parts_.norms.empty()) parts_.norms[l].backward(executor_, pass, parts_.view, x_bar);
      auto products = of_output;
      if (!last) products.items = 0;
      const auto run = [&](const auto& end) {
        layer.backward(call(pass), x_bar, end, products, pending.left, pending.right);
      };
      if constexpr (Bayesian) {
        run(parts_.posteriors[parts_.learns_per_layer() ? l : 0].end(static_cast<Index>(l)));
        if (parts_.learns_per_layer()) backward_posterior(pass, l, closed_form, x_bar, true);
      } else {
        run(detail::PredictionGradient<D, S>{raw(l, pass.copies)});
        parts_.learners[l].backward(executor_, parts_.runs(), parts_.view, pass, parts_.learner_scratch, x_bar,
                                    true);
      }
      executor_.launch_together(dropout_part(drop, pass, l, x_bar, x_bar));
      pending = layer.products(call(pass));
    }
    const bool spread = pass.copies > 1;
    S* bar = spread ? parts_.embedding_bar.data() : x_bar;
    const Items copies{spread ? parts_.shape.size() : 0, parts_.batch.runs,
                       detail::AddCopies<S>{x_bar, parts_.shape.size(), pass.copies, bar}};
    executor_.launch_together(copies, pending.left, pending.right);
    if constexpr (Bayesian) {
      const bool apart = parts_.learner_encoder.has_value();
      S* read_bar = apart ? parts_.learner_bar.data() : bar;
      if (!parts_.learns_per_layer()) backward_posterior(pass, 0, closed_form, read_bar, !apart);
      if (apart) parts_.learner_encoder->backward(executor_, parts_.view, read_bar);
    }
    return bar;
  }

  /// Computes the derivative of the input of a pair of learners from the derivatives of their maps. \param add  to
  /// x_bar
  void backward_posterior(const Pass& pass, std::size_t learner, bool closed_form, S* x_bar,
                          bool add) requires Bayesian {
    parts_.posteriors[learner].backward(executor_, parts_.runs(), pass, closed_form,
                                        1 / static_cast<double>(parts_.kl_count));
    parts_.learners[learner].backward(executor_, parts_.runs(), parts_.view, read(pass), parts_.learner_scratch,
                                      x_bar, add);
  }

  void sum_more_gradients() {
    if (!parts_.learner_encoder) return;
    executor_.launch_together(parts_.learner_encoder->gradient(parts_.view));
  }
};

}  // namespace sheafnn::batch
