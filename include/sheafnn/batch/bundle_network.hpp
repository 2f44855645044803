/// \file
/// BatchNetwork of bundle models, Bunn and BayesianBunn (for one network bsnn/bundle_network.hpp). Heat operators are sums of
/// powers: expansions that decompose the Laplacian are refused.
#pragma once

#include "sheafnn/batch/bundle_parts.hpp"

namespace sheafnn::batch {

/// See the file comment; it has the interface of batch/network_of_parts.hpp.
template <class Executor, int D, bool Bayesian, class Scalar>
class BatchNetwork<Executor, BundleModel<D, Bayesian, Scalar>>
    : public detail::NetworkOfParts<BatchNetwork<Executor, BundleModel<D, Bayesian, Scalar>>, Executor,
                                    BundleModel<D, Bayesian, Scalar>,
                                    detail::BundleNetworkParts<Executor, D, Bayesian, Scalar>> {
  using Base = detail::NetworkOfParts<BatchNetwork, Executor, BundleModel<D, Bayesian, Scalar>,
                                      detail::BundleNetworkParts<Executor, D, Bayesian, Scalar>>;
  friend Base;

 public:
  using typename Base::Model;
  using S = Scalar;
  using Base::Base;

 protected:
  using Base::executor_, Base::parts_;

  [[nodiscard]] detail::PassDropout dropout(const Pass& pass, Purpose purpose, Index number, bool drop) const {
    return {parts_.runs(), pass, purpose, number, drop};
  }
  [[nodiscard]] detail::BundleCall<Executor, S> call(const Pass& pass, std::size_t layer, bool drop) {
    const Index l = static_cast<Index>(layer);
    return {executor_,
            pass,
            parts_.view,
            dropout(pass, Purpose::layer_dropout, sheafnn::detail::hidden_dropouts + l, drop),
            dropout(pass, Purpose::layer_dropout, l, drop),
            parts_.scratch};
  }
  [[nodiscard]] auto learner_dropouts(const Pass& pass, std::size_t layer, bool drop) const {
    return [this, pass, layer, drop](Index k) {
      return dropout(pass, Purpose::learner_dropout,
                     static_cast<Index>(layer) + sheafnn::detail::hidden_dropouts * k, drop);
    };
  }
  /// What the learner of a layer, or the only one, predicts. \param copies  of what it reads
  [[nodiscard]] detail::RawBundle<S> raw(std::size_t learner, Index copies) {
    return parts_.learners[learner].raw(parts_.view, parts_.options.bundles, copies, parts_.learner_scratch);
  }
  void learn(const Pass& pass, std::size_t l, const S* x, bool drop) {
    parts_.learners[l].forward(executor_, parts_.view, pass, parts_.learner_scratch,
                               learner_dropouts(pass, l, drop), x);
  }
  void learn_backward(const Pass& pass, std::size_t l, S* x_bar, bool drop) {
    parts_.learners[l].backward(executor_, parts_.view, pass, parts_.learner_scratch,
                                learner_dropouts(pass, l, drop), x_bar);
  }

  /// X_1 = dropout(GELU(dropout_in(X) W₁ᵀ + b₁)) and, of Bayesian models, Q(O | X_1).
  void encode(const Pass& pass, bool input_drop, bool drop) {
    parts_.encoder->forward(executor_, parts_.runs(), parts_.view, input_drop);
    S* x = parts_.encoder->output();
    executor_.launch_together(dropout(pass, Purpose::hidden_dropout, 0, drop).of(x, parts_.size()));
    if constexpr (Bayesian) {
      learn(pass, 0, x, drop);
      parts_.posterior->infer(executor_, pass.runs, raw(0, 1));
    }
  }

  /// O from a learner that reads X_l, or drawn from Q(O | X_1);  X_{l+1} = layer_l(O, X_l). Returns X_{L+1}.
  [[nodiscard]] const S* diffuse(const Pass& pass, bool drop) {
    const S* x = parts_.encoder->output();
    if (pass.copies > 1) {
      executor_.launch(parts_.size(), pass.instances(),
                       detail::CopyToInstances<S>{x, parts_.size(), pass.copies, parts_.spread.data()});
      x = parts_.spread.data();
    }
    if constexpr (Bayesian) executor_.launch_together(parts_.posterior->draw(parts_.runs(), pass));
    for (std::size_t l = 0; l < parts_.layers.size(); ++l) {
      auto& layer = parts_.layers[l];
      if constexpr (!Bayesian) {
        learn(pass, l, x, drop);
        executor_.launch(layer.maps().shape.nodes, pass.instances(),
                         detail::PredictBundle<D, S>{raw(l, pass.copies), layer.maps(), point(), unit()});
      }
      layer.forward(call(pass, l, drop), x);
      x = layer.output();
    }
    if (parts_.norm) {
      parts_.norm->forward(executor_, nullptr, pass, parts_.view, x, 0, nullptr);
      x = parts_.norm->output();
    }
    return x;
  }

  /// Computes X̄_l and Ō for l = L … 1 from X̄_{L+1}, then the derivative of the encoder's output.
  template <class Products>
  S* diffuse_backward(const Pass& pass, [[maybe_unused]] bool closed_form, bool drop, const Products& products) {
    S* x_bar = parts_.x_bar.data();
    executor_.launch_together(products);
    if (parts_.norm) parts_.norm->backward(executor_, pass, parts_.view, x_bar);
    for (std::size_t l = parts_.layers.size(); l-- > 0;) {
      auto& layer = parts_.layers[l];
      if constexpr (Bayesian) {
        layer.backward(call(pass, l, drop), x_bar, parts_.posterior->end(static_cast<Index>(l)));
      } else {
        layer.backward(call(pass, l, drop), x_bar,
                       detail::PredictBundleBackward<D, S>{raw(l, pass.copies), point(), unit()});
        learn_backward(pass, l, x_bar, drop);
      }
    }
    const Pass shared{pass.runs, 1, true, 0};
    S* bar = x_bar;
    if (pass.copies > 1) {
      bar = parts_.embedding_bar.data();
      executor_.launch(parts_.size(), pass.runs, detail::AddCopies<S>{x_bar, parts_.size(), pass.copies, bar});
    }
    if constexpr (Bayesian) {
      parts_.posterior->backward(executor_, parts_.runs(), pass, closed_form,
                                 1 / static_cast<double>(parts_.kl_count));
      learn_backward(shared, 0, bar, drop);
    }
    executor_.launch_together(dropout(shared, Purpose::hidden_dropout, 0, drop).of(bar, parts_.size()));
    return bar;
  }

  [[nodiscard]] PointMap<SpecialOrthogonal<D>> point() const {
    return sheafnn::detail::bundle_point<D>(*parts_.options.parametrisation);
  }
  [[nodiscard]] S unit() const { return sheafnn::detail::bundle_unit<S>(*parts_.options.parametrisation); }
};

}  // namespace sheafnn::batch
