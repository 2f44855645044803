/// \file
/// BatchNetwork of bundle models, Bunn and BayesianBunn (for one network bsnn/bundle_network.hpp). Heat operators are sums of
/// powers: expansions that decompose the Laplacian are refused.
#pragma once

#include "sheafnn/batch/bundle_parts.hpp"

namespace sheafnn::batch {

/// See the file comment; it has the interface of batch/network.hpp.
template <class Executor, int D, bool Bayesian, class Scalar>
class BatchNetwork<Executor, BundleModel<D, Bayesian, Scalar>>
    : public detail::NetworkOfParts<BatchNetwork<Executor, BundleModel<D, Bayesian, Scalar>>, Executor,
                                    BundleModel<D, Bayesian, Scalar>,
                                    detail::BundleNetworkParts<Executor, D, Bayesian, Scalar>> {
  using Base = detail::NetworkOfParts<BatchNetwork, Executor, BundleModel<D, Bayesian, Scalar>,
                                      detail::BundleNetworkParts<Executor, D, Bayesian, Scalar>>;
  using Base::executor_, Base::parts_;
  friend Base;

 public:
  using typename Base::Model;
  using S = Scalar;

  /// \param model    architecture of all runs; its parameters are not read
  /// \param dropout  may the runs have dropout?
  /// \throws std::invalid_argument  features, labels, roles or class weights that do not fit, a size below 1; as Array
  /// \throws std::runtime_error     eigenpairs that do not converge
  BatchNetwork(Executor& executor, const Model& model, const Graph& graph, const NodeFeatures& features,
               const NodeTargetLists& targets, const BatchSize& batch, bool dropout = true)
      : Base(executor, model, graph, features, targets, batch, dropout) {}
  /// A network of the same models on the same graph that only evaluates; see batch/network.hpp.
  ///
  /// \param copies  samples that are computed at the same time, at least 1
  /// \throws std::invalid_argument  targets that do not fit. Unchecked: copies, and that `other` has the same model
  BatchNetwork(const BatchNetwork& other, const Model& model, const NodeTargetLists& targets, Index copies)
      : Base(other, model, targets, copies) {}

 private:
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

  /// O from a learner that reads X_l, or drawn from Q(O | X_1);  X_{l+1} = layer_l(O, X_l);  the logits without bias.
  void forward(const Pass& pass, bool drop) {
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
    parts_.output->forward(executor_, pass, parts_.view,
                           parts_.hidden_readout.forward(executor_, pass, parts_.view, x));
  }

  /// Computes X̄_l and Ō for l = L … 1 from the derivative of the logits, then X̄_1 and the derivatives of the encoder's
  /// weights.
  void backward(const Pass& pass, bool closed_form, bool drop) {
    S* x_bar = parts_.x_bar.data();
    parts_.output->backward(executor_, pass, parts_.view, parts_.hidden_readout.output_bar(x_bar));
    executor_.launch_together(parts_.output->weight_products(pass, parts_.view));
    parts_.hidden_readout.backward(executor_, pass, parts_.view, x_bar);
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
      parts_.posterior->backward(executor_, parts_.runs(), pass, closed_form);
      learn_backward(shared, 0, bar, drop);
    }
    executor_.launch_together(dropout(shared, Purpose::hidden_dropout, 0, drop).of(bar, parts_.size()));
    parts_.encoder->backward(executor_, parts_.view, bar);
  }

  [[nodiscard]] PointMap<SpecialOrthogonal<D>> point() const {
    return sheafnn::detail::bundle_point<D>(*parts_.options.parametrisation);
  }
  [[nodiscard]] S unit() const { return sheafnn::detail::bundle_unit<S>(*parts_.options.parametrisation); }
};

}  // namespace sheafnn::batch
