/// \file
/// BatchAttentionLayer: an attention layer of all instances of a batch (formulas: attention_kernels.hpp, attention_walks.hpp; for
/// one network layers/attention_layer.hpp).
#pragma once

#include <cstdint>

#include "sheafnn/batch/attention_gradient_kernels.hpp"
#include "sheafnn/batch/diffusion_layer.hpp"
#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/layer_scratch.hpp"
#include "sheafnn/batch/layer_setting.hpp"
#include "sheafnn/batch/mixing_weights.hpp"
#include "sheafnn/batch/sheaf.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn::batch::detail {

/// One layer, with the interface of BatchDiffusionLayer; no other layer shares its launches.
template <class Executor, class Family, class S>
class BatchAttentionLayer {
  using Call = BatchLayerCall<Executor, Family, S>;
  using Numbers = Array<Executor, S>;

 public:
  static constexpr bool reads_first = false, reads_before = false, reads_maps = false;

  /// \throws std::invalid_argument  fixed filters, 2³¹ scores or more
  explicit BatchAttentionLayer(const BatchLayerSetting<Executor, S>& of)
      : options_(of.attention),
        scores_{of.graph, of.attention.heads},
        shape_(of.shape),
        end_{of.activation, of.attention.residual},
        number_(static_cast<std::uint32_t>(of.number)),
        mixing_(of) {
    layers::require_no_filters(of.shape.coordinates - Family::stalk_dimension, layers::LayerForm::attention);
    require_countable("scores of attention", scores_.numbers());
    const BatchSize& batch = of.batch;
    const Index all = batch.instances(), training = batch.training_instances();
    const bool normalised = options_.normalised, transported = options_.transported;
    const auto numbers = [&](Index size) { return Numbers(of.executor, "layers", size); };
    const auto offset = [&](const char* name) {
      return of.parameters.info(of.parameters.find(sheafnn::detail::concat("attention.", of.number, name))).offset;
    };
    at_ = {offset(".weight"), offset(".vector"), options_.random ? offset(".log_scale") : -1,
           options_.heads,    options_.width,    shape_.row()};
    moved_ = of.features(all);
    if (transported && normalised) moved_source_ = of.features(all);
    output_ = of.features(all);
    keys_ = numbers(batch.runs * 2 * options_.heads * shape_.row());
    node_ = numbers(all * shape_.nodes * 2 * options_.heads);
    score_ = numbers(all * scores_.numbers());
    share_ = numbers(all * scores_.numbers());
    if (options_.random) noise_ = numbers(all * scores_.numbers());
    mean_ = numbers(all * scores_.count());
    if (!batch.trains()) return;
    if (end_.residual) change_ = of.features(training);
    if (normalised) gathered_ = of.features(training);
    mean_bar_ = numbers(training * scores_.count());
    head_stride_ = training * shape_.size();
    if (transported) {
      source_bar_ = of.features(training);
      kappa_ = of.features(training * options_.heads);
      if (normalised) {
        plain_source_bar_ = of.features(training);
        plain_kappa_ = of.features(training * options_.heads);
      }
    }
    if (options_.random) scale_bar_ = numbers(training * shape_.nodes * options_.heads);
    columns_ = 2 * options_.heads * shape_.row() + (options_.random ? 1 : 0);
    sums_ = of.sums.reserve(RowChunks{shape_.nodes * batch.training_copies}.count(), columns_);
    totals_ = numbers(batch.runs * columns_);
    if (options_.random) kl_ = of.kl_rows.reserve(kl_chunks(batch.training_copies).count());
  }

  [[nodiscard]] const S* output() const noexcept { return output_.data(); }
  /// Where the input after dropout goes, to be filled before forward().
  [[nodiscard]] S* dropped_input() noexcept { return mixing_.dropped_input(); }

  /// See BatchDiffusionLayer. \returns false: it does not continue with the next layer
  bool forward(const Call& call, const S* x, const S*, bool drop, S* next) {
    const Pass& pass = call.pass;
    const Index instances = pass.instances();
    mixing_.begin(x, drop);
    source_ = number_ == 0 ? x : mixing_.kept();
    const AttentionScaling<Family, S> scaling = this->scaling(call);
    const bool scales_source = moved_source_.size() > 0;
    read_ = scales_source ? moved_source_.data() : source_;
    const Index blocks = options_.random ? (options_.heads + 3) / 4 : 0;
    call.executor.launch_together(
        Items{shape_.items(), instances,
              mixing_.template forward<Family>(call, scaling, moved_.data())},
        Items{scales_source ? shape_.items() : 0, instances,
              ScaleFeatures<Family, S>{scaling, shape_, source_, moved_source_.data()}},
        Items{2 * options_.heads * shape_.row(), pass.runs,
              MakeKeys<S>{at_, call.parameters.value, call.parameters.stride, shape_.row(), keys_.data()}},
        Items{scores_.count() * blocks, instances,
              ScoreNoise<S>{scores_, call.runs, pass, number_, blocks > 0 ? blocks : 1, noise_.data()}});
    attend(call);
    launch_diffusion(call.executor, instances,
                     AttentionForward<Family, S>{{{walk(call, moved_.data(), mean_.data(), 1, false)}},
                                                 scaling,
                                                 end_,
                                                 x,
                                                 mixing_.y(),
                                                 pass.keeps() ? gathered_.data() : nullptr,
                                                 pass.keeps() ? change_.data() : nullptr,
                                                 {nullptr, 0, false, nullptr, output_.data(), call.runs, pass,
                                                  number_ + 1, next}});
    return false;
  }

  /// See BatchDiffusionLayer.
  template <class... Ready>
  void backward(const Call& call, bool add, S* x_bar, const Ready&... ready) {
    const Pass& pass = call.pass;
    const Index instances = pass.instances();
    auto& side = call.scratch.of(number_);
    const AttentionScaling<Family, S> scaling = this->scaling(call);
    S *m_bar = side.z_bar.data(), *own_r_bar = options_.normalised ? side.r_bar.data() : nullptr;
    S *r_bar = options_.normalised ? own_r_bar : m_bar, *y_bar = side.y_bar.data();
    S* w_bar = options_.normalised ? call.scratch.w_bar.data() : nullptr;
    call.executor.launch_together(ready..., Items{shape_.items(), instances,
                                                  AttentionEndBackward<Family, S>{scaling, shape_, end_,
                                                                                  end_.residual ? change_.data()
                                                                                                : output_.data(),
                                                                                  x_bar, m_bar, own_r_bar}});
    const int lanes = tile_lanes(shape_);
    call.executor.launch_teams(scores_.count(), instances, lanes,
                               MeanBars<Family, S>{{scores_, scaling, shape_, moved_.data(), lanes},
                                                   r_bar,
                                                   mean_bar_.data()});
    call.executor.launch(shape_.nodes * options_.heads, instances,
                         AttendBackward<S>{arrays(call), call.runs, mean_bar_.data(), node_.data(),
                                           options_.random ? scale_bar_.data() : nullptr});
    scores_backward(call);
    launch_diffusion(call.executor, instances,
                     ScaledWalk<Family, S>{{{walk(call, r_bar, mean_.data(), 1, true)}},
                                           scaling,
                                           end_.residual ? m_bar : nullptr,
                                           w_bar,
                                           y_bar});
    const KeySums<S> sums{at_,
                          node_.data(),
                          source_,
                          options_.transported ? kappa_.data() : nullptr,
                          head_stride_,
                          scale_bar_.data(),
                          {shape_.nodes * pass.copies},
                          shape_.row(),
                          columns_,
                          call.parameters.arena + sums_,
                          call.parameters.arena_stride};
    const Items weights{sums.items(), pass.runs, sums};
    const Items input{shape_.items(), instances,
                      AttentionMixBackward<Family, S>{mixing_.template backward<Family>(call, x_bar),
                                                      at_,
                                                      end_.residual,
                                                      number_ == 0,
                                                      keys_.data(),
                                                      2 * options_.heads * shape_.row(),
                                                      node_.data(),
                                                      options_.transported ? source_bar_.data() : nullptr}};
    const auto gradients = [&](const auto&... parts) {
      call.executor.launch_together(weights, input, parts...);
      finish_weights(call);
    };
    if constexpr (sheaf::is_learned<Family>) {
      if (!call.sheaf.learned()) return gradients();
      const QuerySums<Family, S> queries = this->queries(call);
      const S* source = options_.transported ? read_ : nullptr;
      gradients(Teams{scores_.graph.edges, instances, lanes,
                      AttentionEdgeGradient<Family, S>{queries, mean_.data(), moved_.data(), r_bar, source,
                                                       call.sheaf.gradient().off_diagonal, add, lanes}},
                Teams{add && !options_.normalised ? 0 : shape_.nodes, instances, lanes,
                      AttentionNodeGradient<Family, S>{queries, m_bar, gathered_.data(), w_bar, mixing_.y(),
                                                       plain_source_bar_.data(),
                                                       options_.transported ? source_ : nullptr,
                                                       plain_kappa_.data(), head_stride_, call.sheaf.gradient(),
                                                       add, lanes}});
    } else {
      gradients();
    }
  }

  /// See BatchDiffusionLayer.
  [[nodiscard]] LayerProducts<S> products(const Pass& pass, const ParameterView<S>& parameters,
                                          const LayerScratch<Executor, S>& scratch) const {
    return mixing_.products(pass, parameters, scratch);
  }

 private:
  [[nodiscard]] RowChunks kl_chunks(Index copies) const { return {copies * scores_.numbers()}; }
  [[nodiscard]] AttentionScaling<Family, S> scaling(const Call& call) const {
    return {call.range, call.sheaf.view(), options_.normalised};
  }
  [[nodiscard]] ScoreArrays<S> arrays(const Call& call) {
    const bool random = options_.random;
    return {scores_,
            score_.data(),
            share_.data(),
            random ? noise_.data() : nullptr,
            random ? call.parameters.value + at_.log_scale : nullptr,
            call.parameters.stride,
            call.pass.copies};
  }
  [[nodiscard]] QuerySums<Family, S> queries(const Call& call) const {
    const Index of_side = options_.heads * shape_.row();
    return {scaling(call), shape_, scores_, share_.data(), keys_.data() + of_side, 2 * of_side, call.pass.copies};
  }
  /// The walk over arcs, from features. \param weight  one value for every `step` of scores
  [[nodiscard]] NeighbourSums<WeightedTransports<Family, S>, S> walk(const Call& call, const S* features,
                                                                     const S* weight, Index step,
                                                                     bool reversed) const {
    return begin_sums(
        call.executor, call.pass.instances(), scores_.graph,
        WeightedTransports<Family, S>{{call.range, call.sheaf.view()}, scores_, weight, step, reversed}, shape_,
        features, call.scratch.segments.data());
  }
  /// Λ from keys, queries and noise, and in training passes the KL term.
  void attend(const Call& call) {
    const Pass& pass = call.pass;
    const Index instances = pass.instances(), heads = options_.heads, of_nodes = shape_.nodes * heads;
    const int lanes = team_lanes(shape_.row()), tiles = tile_lanes(shape_);
    const QuerySums<Family, S> queries = this->queries(call);
    call.executor.launch_together(Teams{of_nodes, instances, lanes,
                                        NodeScores<S>{heads, pass.copies, shape_.nodes, shape_.row(), keys_.data(),
                                                      source_, node_.data(), lanes}},
                                  Teams{options_.transported ? scores_.numbers() : 0, instances, tiles,
                                        TransportedScores<Family, S>{{scores_, queries.scaling, shape_, read_,
                                                                      tiles},
                                                                     queries.queries,
                                                                     queries.run_stride,
                                                                     pass.copies,
                                                                     score_.data()}});
    call.executor.launch(of_nodes, instances, Attend<S>{arrays(call), node_.data(), options_.transported});
    const RowChunks chunks = kl_chunks(pass.copies);
    const bool with_kl = pass.keeps() && options_.random;
    call.executor.launch_together(Items{scores_.count(), instances, MeanShares<S>{arrays(call), mean_.data()}},
                                  Items{with_kl ? chunks.count() : 0, pass.runs,
                                        ScoreKl<S>{arrays(call), chunks, call.kl_row(kl_), call.kl_stride}});
  }
  /// Computes the derivatives of queries and of what scores read of neighbours from the derivatives of s + t.
  void scores_backward(const Call& call) {
    const Index instances = call.pass.instances(), heads = options_.heads;
    if (!options_.transported) {
      call.executor.launch(shape_.nodes * heads, instances, TargetBars<S>{scores_, share_.data(), node_.data()});
      return;
    }
    const bool keeps = options_.normalised;
    for (Index k = 0; k < heads; ++k) {
      launch_diffusion(call.executor, instances,
                       ScaledWalk<Family, S>{{{walk(call, read_, share_.data() + k, heads, false)}},
                                             scaling(call),
                                             nullptr,
                                             keeps ? plain_kappa_.data() + k * head_stride_ : nullptr,
                                             kappa_.data() + k * head_stride_});
    }
    const int lanes = scores_.graph.arc_lanes(shape_.items() * instances);
    call.executor.launch_teams(shape_.items(), instances, lanes,
                               SourceBackward<Family, S>{queries(call), keeps ? plain_source_bar_.data() : nullptr,
                                                         source_bar_.data(), lanes});
  }
  /// Computes the gradients of W, a and log σ from partial sums.
  void finish_weights(const Call& call) {
    const Index runs = call.pass.runs, chunks = RowChunks{shape_.nodes * call.pass.copies}.count();
    call.executor.launch_teams(columns_, runs, max_lanes,
                               KeyTotals<S>{call.parameters.arena + sums_, call.parameters.arena_stride, chunks,
                                            columns_, totals_.data()});
    const KeyVectorBar<S> vector{at_, call.parameters, call.runs, totals_.data(), columns_, at_.width};
    call.executor.launch_together(Items{at_.heads * at_.width * at_.row, runs,
                                        KeyWeightBar<S>{at_, call.parameters, totals_.data(), columns_, at_.row,
                                                        at_.width}},
                                  Teams{vector.items(), runs, max_lanes, vector});
  }

  AttentionOptions options_;
  ScoreShape<S> scores_;
  FeatureShape<S> shape_;
  kernels::AttentionEnd end_;
  std::uint32_t number_ = 0;
  BatchMixing<Executor, S> mixing_;
  AttentionPlaces at_;
  Index columns_ = 0, sums_ = 0, kl_ = 0, head_stride_ = 0;
  Numbers moved_, moved_source_;           ///< S Y, and S times what scores read
  Numbers keys_;                           ///< p and q of each run
  Numbers node_;                           ///< s and t; after a backward pass s̄ and t̄
  Numbers score_, share_, noise_;          ///< e, the softmax of each head (after a backward pass ē), ε
  Numbers mean_, mean_bar_;                ///< Λ, Λ̄
  Numbers change_;                         ///< X' − X of the option `residual`
  Numbers gathered_;                       ///< M before its own S
  Numbers source_bar_, plain_source_bar_;  ///< derivative of what transported scores read, after and before S
  Numbers kappa_, plain_kappa_;            ///< q̄ of each node and head, after and before S
  Numbers scale_bar_;                      ///< derivative of log σ, of each node and head
  Numbers totals_;                         ///< p̄, q̄ and the derivative of log σ
  Numbers output_;
  const S *source_ = nullptr, *read_ = nullptr;  ///< what scores read, and the same times S
};

}  // namespace sheafnn::batch::detail
