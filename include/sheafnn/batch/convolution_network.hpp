/// \file
/// BatchNetwork of convolutions on given sheaves, SheafConvolutions and BayesianSheafConvolutions (for one network
/// bsnn/convolution_network.hpp). The runs of a batch share the given sheaf.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>

#include "sheafnn/batch/convolution_parts.hpp"
#include "sheafnn/batch/embedding_kernels.hpp"
#include "sheafnn/batch/network_of_parts.hpp"

namespace sheafnn::batch {

/// See the file comment; it has the interface of batch/network_of_parts.hpp.
template <class Executor, RestrictionMapFamily FamilyType, class Posterior, std::floating_point Scalar>
class BatchNetwork<Executor, ConvolutionModel<FamilyType, Posterior, Scalar>>
    : public detail::ConvolutionNetworkBase<Executor, ConvolutionModel<FamilyType, Posterior, Scalar>> {
  using Base = detail::ConvolutionNetworkBase<Executor, ConvolutionModel<FamilyType, Posterior, Scalar>>;
  friend Base;

 public:
  using typename Base::Model;
  using S = Scalar;
  using Base::Base;

 protected:
  using Base::executor_, Base::parts_;
  static constexpr bool sampled = Model::bayesian;

  [[nodiscard]] auto call(const Pass& pass, std::size_t layer, bool drop) {
    const Index sheaf = std::min(static_cast<Index>(layer), parts_.sheaf_count - 1);
    return detail::ConvolutionCall<Executor, FamilyType, S>{executor_,      parts_.runs(),
                                                            pass,           parts_.view,
                                                            parts_.sheaf,   parts_.sheaves_at(sheaf),
                                                            parts_.scratch, drop};
  }

  /// What the first layer begins with and, of Bayesian models, Q(F | X_1).
  void encode(const Pass&, bool input_drop, bool) {
    parts_.encoder->forward(executor_, parts_.runs(), parts_.view, input_drop);
    if constexpr (sampled) {
      executor_.launch_together(parts_.learner->assemble(parts_.view));
      parts_.posterior->infer(executor_, parts_.view, *parts_.learner, parts_.learner_input());
    }
  }

  /// F^l ~ Q(F | X_1), or given;  X_{l+1} = layer_l(X_l; F^l). Returns X_{L+1}.
  [[nodiscard]] const S* diffuse(const Pass& pass, bool drop) {
    if constexpr (sampled) {
      const auto maps = parts_.posterior->maps(parts_.runs(), pass, parts_.sheaf_count, nullptr);
      parts_.sheaf.build(executor_, pass, all_sheaves(), maps, parts_.posterior->edge_weight(*parts_.learner));
    }
    const S* x = parts_.encoder->output();
    for (std::size_t l = 0; l < parts_.layers.size(); ++l) {
      auto& layer = parts_.layers[l];
      layer.forward(call(pass, l, drop), x, l == 0 ? Index{pass.copies} : 1);
      x = layer.output();
    }
    return x;
  }

  /// Computes X̄_l and the derivatives of F^l for l = L … 1 from X̄_{L+1}, then of what the first layer began with and of
  /// Q's parameters.
  template <class Products>
  S* diffuse_backward(const Pass& pass, [[maybe_unused]] bool closed_form, bool drop, const Products& of_output) {
    S* x_bar = parts_.x_bar.data();
    const std::size_t top = parts_.layers.size() - 1;
    for (std::size_t l = top + 1; l-- > 0;) {
      auto products = of_output;
      if (l < top) products.items = 0;
      parts_.layers[l].backward(call(pass, l, drop), x_bar, products);
    }
    S* bar = x_bar;
    if (pass.copies > 1) {
      bar = parts_.start_bar.data();
      executor_.launch(parts_.start_size, pass.runs,
                       detail::AddCopies<S>{x_bar, parts_.start_size, pass.copies, bar});
    }
    if constexpr (sampled) backward_posterior(pass, closed_form, parts_.options.encoder ? bar : nullptr);
    return bar;
  }
  /// \param bar  derivative of the embeddings, which gets what comes through the maps; null: the learner reads features
  void backward_posterior(const Pass& pass, bool closed_form, S* bar) requires sampled {
    executor_.launch_together(parts_.sheaf.backward_nodes(pass, all_sheaves()));
    executor_.launch_together(parts_.posterior->backward(parts_.runs(), pass, parts_.sheaf_count, parts_.sheaf,
                                                         *parts_.learner, closed_form, nullptr));
    parts_.learner->backward(executor_, parts_.view, bar, true);
    executor_.launch_together(parts_.learner->first_products(parts_.view));
  }
  [[nodiscard]] detail::SheafRange all_sheaves() const { return parts_.sheaves_at(0, parts_.sheaf_count); }
};

}  // namespace sheafnn::batch
