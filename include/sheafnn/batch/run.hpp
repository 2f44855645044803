/// \file
/// What distinguishes the trainings of a batch: Run, one record per training in the memory of the executor, and
/// dropout as kernels apply it.
///
/// Unchecked: indices of items, runs, instances and lanes, and the sizes of the arrays of pointers and views.
/// BatchNetwork and BatchTrainer check their arguments.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sheafnn/batch/divisor.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/graph_of.hpp"
#include "sheafnn/layers/layer_form.hpp"
#include "sheafnn/nn/adam.hpp"
#include "sheafnn/nn/dropout.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn::batch {

/// A dropout rate in the form that kernels use (nn/dropout.hpp); rate 0 keeps everything.
struct DropoutRule {
  std::uint32_t threshold = 65536;  ///< kept when the element's 16 random bits are below
  double scale = 1;                 ///< of kept elements

  DropoutRule() = default;
  explicit DropoutRule(double rate) {
    const layers::Dropout dropout{rate, {}};
    if (!dropout.active()) return;
    threshold = dropout.threshold();
    scale = dropout.scale();
  }
};

namespace detail {

/// A dropout rule on the elements of one stream; S = float or double.
template <class S>
class ElementDropout {
 public:
  SHEAFNN_HD ElementDropout(const Stream& stream, const DropoutRule& rule)
      : stream_(stream), threshold_(rule.threshold), scale_(static_cast<S>(rule.scale)) {}

  /// What becomes of the value of an element below 2³¹. A Philox block covers eight elements, 16 apart: the last block
  /// is remembered, because the next coordinate of the same channel is often among them.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S operator()(Index element, S value) {
    return keeps(element) ? value * scale_ : S(0);
  }
  /// Is an element kept?
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE bool keeps(Index element) {
    constexpr std::uint32_t block = layers::Dropout::block;
    const std::uint32_t e = static_cast<std::uint32_t>(element), id = e / block * 16 + e % 16;
    if (id != id_) {
      id_ = id;
      words_ = sheafnn::detail::dropout_words(stream_, static_cast<Index>(id));
    }
    return sheafnn::detail::half_keeps(words_, static_cast<int>(e % block / 16), threshold_);
  }
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S scale() const { return scale_; }
  /// Calls use(element, value after dropout) for the elements below `count` that Philox block `id` covers;
  /// `values` are the values of all elements.
  template <class Use>
  SHEAFNN_HD SHEAFNN_INLINE void for_block(Index id, Index count, const S* values, const Use& use) const {
    sheafnn::detail::for_dropout_block(stream_, threshold_, id, count, [=, scale = scale_](Index element, bool kept) {
      use(element, kept ? values[element] * scale : S(0));
    });
  }

 private:
  Stream stream_;
  std::uint32_t threshold_;
  S scale_;
  std::uint32_t id_ = ~std::uint32_t{0};  ///< of words_; this one is of no element
  random::PhiloxBlock<std::uint32_t> words_{};
};

}  // namespace detail

/// One training of a batch. Kernels read it; the kernels of the optimiser write what changes from epoch to epoch.
struct Run {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;       ///< of the current pass; addresses its random numbers
  std::int32_t split = 0;        ///< row of the node roles
  DropoutRule input_dropout;     ///< of features
  DropoutRule dropout;           ///< of hidden features
  double training_share = 0;     ///< 1 / sum of the training nodes' class weights
  double validation_weight = 0;  ///< sum of the validation nodes' class weights
  double validation_nodes = 0;   ///< how many there are; 0: every epoch is the best so far
  double test_nodes = 0;         ///< how many there are, or 0
  double kl_weight = 0;          ///< λ of this epoch
  double learning_rate = 0;      ///< of Adam
  double sheaf_learning_rate = 0;  ///< of the sheaf learner's weights
  double weight_decay = 0;       ///< of all weights but the sheaf learner's
  double sheaf_decay = 0;        ///< of the sheaf learner's weights
  double kl_maximum = 0;         ///< largest λ
  WeightDecay decay = WeightDecay::l2;
  KlSchedule kl_schedule = KlSchedule::off;
  std::int32_t by_accuracy = 0;  ///< the best epoch has the best validation accuracy, not the smallest loss
  std::int64_t epochs = 0;       ///< at most this many
  std::int64_t patience = 0;     ///< stop after this many epochs without a better one
  double step_rate = 0;          ///< of this step: learning_rate / (1 − β₁ᵗ)
  double sheaf_step_rate = 0;    ///< of this step: sheaf_learning_rate / (1 − β₁ᵗ)
  double root_scale = 0;         ///< of this step: 1 / √(1 − β₂ᵗ)

  /// Address of random numbers of the current pass.
  [[nodiscard]] SHEAFNN_HD Stream stream(Purpose purpose, std::uint32_t layer = 0,
                                         std::uint32_t sample = 0) const noexcept {
    return Stream{seed, purpose, epoch, layer, sample};
  }
};

/// Roles of a node in a split, as bits.
enum NodeRole : std::uint8_t { training_node = 1, validation_node = 2, test_node = 4 };

namespace detail {

/// Values per node that a layer computes.
template <class Model>
[[nodiscard]] Index layer_width(const Model& model) {
  if constexpr (requires { layers::parts_of(model.options().layer); }) {
    return layers::parts_of(model.options().layer) * model.hidden_width();
  } else {
    return model.hidden_width();
  }
}

/// How many samples a device computes at the same time without being slower for it: one alone leaves it idle on a small
/// graph.
template <class Model>
[[nodiscard]] Index samples_at_once(const Model& model, const GraphOf<Model>& graph, Index runs) {
  constexpr Index enough_work = Index{1} << 22;
  return enough_work / std::max<Index>(1, runs * graph.node_count() * layer_width(model));
}
/// How many of `samples` samples are computed at the same time, at least one.
template <class Model>
[[nodiscard]] Index max_copies(const Model& model, const GraphOf<Model>& graph, Index runs, Index samples) {
  return std::clamp<Index>(samples_at_once(model, graph, runs), 1, samples);
}

}  // namespace detail

/// How many trainings a batch has, and how many posterior samples of each are computed at the same time.
struct BatchSize {
  Index runs = 1;
  Index training_copies = 1;  ///< sheaves drawn in a training step; 0 of a network that only evaluates
  Index copies = 1;           ///< largest number of copies of a pass, at least training_copies

  /// \throws std::invalid_argument  a number below 1, or copies below training_copies
  [[nodiscard]] const BatchSize& checked() const {
    require(runs >= 1, "runs", runs, "must be at least 1");
    require(training_copies >= 1, "training_copies", training_copies, "must be at least 1");
    require(copies >= training_copies, "copies", copies, "must be at least training_copies");
    return *this;
  }
  [[nodiscard]] Index instances() const noexcept { return runs * copies; }
  [[nodiscard]] Index training_instances() const noexcept { return runs * training_copies; }
  [[nodiscard]] bool trains() const noexcept { return training_copies > 0; }
  /// The size of what the copies of a run share.
  [[nodiscard]] BatchSize without_copies() const noexcept { return {runs, trains() ? 1 : 0, 1}; }
};

/// A pass over `runs` trainings with `copies` posterior samples of each at the same time: copy c of run r is instance
/// r · copies + c.
struct Pass {
  Index runs = 1;
  Divisor copies = 1;
  bool training = false;
  std::uint32_t first_sample = 0;  ///< number of copy 0 in the addresses of random numbers
  std::uint32_t behind = 0;        ///< number of epochs by which the pass is before the runs'
  bool keep = false;               ///< a backward pass may follow an evaluation, too

  /// May a backward pass follow?
  [[nodiscard]] SHEAFNN_HD bool keeps() const noexcept { return training || keep; }
  [[nodiscard]] SHEAFNN_HD Index instances() const noexcept { return runs * copies; }
  [[nodiscard]] SHEAFNN_HD Index run_of(Index instance) const noexcept { return instance / copies; }
  [[nodiscard]] SHEAFNN_HD std::uint32_t sample_of(Index instance) const noexcept {
    const std::uint32_t copy = first_sample + static_cast<std::uint32_t>(instance % copies);
    return training ? copy : 0x8000U + copy % 0x8000U;
  }
  [[nodiscard]] SHEAFNN_HD Stream stream(const Run& run, Purpose purpose, std::uint32_t layer,
                                         Index instance) const noexcept {
    Stream r = run.stream(purpose, layer, sample_of(instance));
    r.epoch -= behind;
    return r;
  }
  /// Dropout of hidden features of an instance.
  template <class S>
  [[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE detail::ElementDropout<S> dropout(const Run* first, Purpose purpose,
                                                                            std::uint32_t layer,
                                                                            Index instance) const {
    const Run& run = first[run_of(instance)];
    return {stream(run, purpose, layer, instance), run.dropout};
  }
};

}  // namespace sheafnn::batch
