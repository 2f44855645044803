/// \file
/// BatchSage: a convolution with the mean over neighbours for a batch of runs,
///
///     Z = mean over neighbours of (P W) + X V + 1 bᵀ,   P = X or, projected, P = ReLU(X W_p + 1 b_pᵀ),
///
/// and its backward pass (for one network layers/sage_pair.hpp, which has the formulas).
#pragma once

#include <optional>

#include "sheafnn/batch/activated_linear.hpp"
#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/linear.hpp"
#include "sheafnn/batch/neighbour_sums.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/layers/weights.hpp"

namespace sheafnn::batch::detail {

/// Rows of any width over nodes, added up as they are.
template <class S>
using RowTeam = WalkTeam<NeighbourSums<NoBlocks<1, S>, S>, S>;

/// z += mean over neighbours, by the arcs that enter a node, and the bias.
template <class S>
struct AddMean : RowTeam<S> {
  using typename RowTeam<S>::Place;
  using RowTeam<S>::diffusion;
  const S* bias;  ///< of run 0; null: none
  Index parameter_stride;
  Divisor copies;
  S* z;

  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    if (place.left_out) return;
    const S degree = diffusion.graph.degree[place.at.node];
    Tile<S> sum[1], value[1];
    unpack(sums, sum);
    load_stalk(diffusion.shape, place.at, z, value);
    if (degree > S(0)) value[0] += (S(1) / degree) * sum[0];
    if (bias != nullptr) {
      const S* own = bias + place.at.instance / copies * parameter_stride + place.at.channel;
      value[0] += TilePart{place.at.range.count}.load(own);
    }
    store_stalk(diffusion.shape, place.at, value, z);
  }
};
/// out = Z̄ / deg⁻; item: element, group: instance.
template <class S>
struct ShareRows {
  const S* degree;
  Divisor width;
  Index size;
  const S* bar;
  S* out;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    const S count = degree[item / width];
    out[instance * size + item] = count > S(0) ? bar[instance * size + item] / count : S(0);
  }
};
/// out = the sum over neighbours, by the arcs that leave a node.
template <class S>
struct StoreSum : RowTeam<S> {
  using typename RowTeam<S>::Place;
  using RowTeam<S>::diffusion;
  S* out;

  SHEAFNN_HD void finish(const Place& place, const S* sums) const {
    if (place.left_out) return;
    Tile<S> sum[1];
    unpack(sums, sum);
    store_stalk(diffusion.shape, place.at, sum, out);
  }
};

/// Arrays that convolutions share, since one of them works at a time.
template <class Executor, class S>
struct SageScratch {
  Array<Executor, S> product, segments;  ///< P W; partial sums of high-degree nodes
  Array<Executor, S> shared, product_bar, projection_bar;

  SageScratch() = default;
  /// \param width            of the widest rows between convolutions, outputs and inputs included
  /// \param rows, training   of all instances; of a training pass's instances
  SageScratch(Executor& executor, Index segments_of_instance, Index width, Index instances, Index nodes,
              Index training) {
    const auto array = [&](Index size) { return Array<Executor, S>(executor, "learners", size); };
    product = array(instances * nodes * width);
    segments = array(instances * segments_of_instance * width);
    for (Array<Executor, S>* one : {&shared, &product_bar, &projection_bar})
      *one = array(training * nodes * width);
  }
};

/// The convolution of all runs; what its backward pass reads stays in its own arrays.
template <class Executor, class S>
class BatchSage {
 public:
  using Scratch = SageScratch<Executor, S>;

  /// \param adds_bias  otherwise the kernel that reads output() adds it
  BatchSage(Executor& executor, const ArcViews<S>& arcs, const layers::SageWeights<layers::ParameterSlot>& at,
            const layers::ParameterSet<S>& parameters, Index inputs, Index outputs, bool projected, bool adds_bias,
            const BatchSize& batch, PartialSums& sums)
      : arcs_(arcs),
        shape_{arcs.in.nodes, 1, outputs, {}},
        adds_bias_(adds_bias),
        neighbour_({at.neighbour.weight, {-1}}, parameters, batch.runs, batch.training_copies * arcs.in.nodes,
                   inputs, outputs, sums),
        self_({at.self, at.neighbour.bias}, parameters, batch.runs, batch.training_copies * arcs.in.nodes, inputs,
              outputs, sums),
        z_(executor, "learners", batch.instances() * shape_.size()) {
    require_countable("features of a learner", shape_.size());
    require_countable("tiles of the sums of segments", arcs.segments() * shape_.tiles);
    if (projected) {
      projection_.emplace(executor, at.projection, parameters, Activation::relu, arcs.in.nodes, inputs, inputs,
                          batch, sums);
    }
  }

  [[nodiscard]] S* output() noexcept { return z_.data(); }
  [[nodiscard]] const S* bias(const ParameterView<S>& parameters) const noexcept { return self_.bias(parameters); }
  /// The size of Z of an instance.
  [[nodiscard]] Index size() const noexcept { return shape_.size(); }

  /// \param x  n × inputs per instance; stays in place until backward()
  void forward(Executor& executor, const ParameterView<S>& parameters, const Pass& pass, Scratch& scratch,
               const S* x) {
    const Index rows = pass.copies * arcs_.in.nodes;
    input_ = read_ = x;
    if (projection_) {
      projection_->forward(executor, parameters, rows, x);
      executor.launch_together(projection_->activate(parameters, rows));
      read_ = projection_->output();
    }
    neighbour_.forward(executor, parameters, rows, read_, scratch.product.data());
    self_.forward(executor, parameters, rows, x, z_.data());
    launch_diffusion(executor, pass.instances(),
                     AddMean<S>{{sums_of(executor, pass, arcs_.in, scratch, scratch.product.data())},
                                adds_bias_ ? bias(parameters) : nullptr,
                                parameters.stride,
                                pass.copies,
                                z_.data()});
  }
  /// Computes the derivative of x and partial sums of the gradients from the derivative of output(). \param add  to
  /// x_bar
  void backward(Executor& executor, const ParameterView<S>& parameters, const Pass& pass, Scratch& scratch,
                const S* bar, S* x_bar, bool add) {
    const Index rows = pass.copies * arcs_.in.nodes;
    S *shared = scratch.shared.data(), *product_bar = scratch.product_bar.data(),
      *p_bar = scratch.projection_bar.data();
    executor.launch_together(Items{shape_.size(), pass.instances(),
                                   ShareRows<S>{arcs_.in.degree, shape_.channels, shape_.size(), bar, shared}},
                             self_.weight_products(parameters, rows, input_, bar));
    launch_diffusion(executor, pass.instances(),
                     StoreSum<S>{{sums_of(executor, pass, arcs_.out, scratch, shared)}, product_bar});
    self_.backward(executor, parameters, rows, bar, x_bar, add);
    const auto products = neighbour_.weight_products(parameters, rows, read_, product_bar);
    if (!projection_) {
      executor.launch_together(products);
      neighbour_.backward(executor, parameters, rows, product_bar, x_bar, true);
      return;
    }
    neighbour_.backward(executor, parameters, rows, product_bar, p_bar);
    executor.launch_together(products, projection_->slopes(rows, p_bar));
    executor.launch_together(projection_->weight_products(parameters, rows, p_bar));
    projection_->linear().backward(executor, parameters, rows, p_bar, x_bar, true);
  }

 private:
  [[nodiscard]] NeighbourSums<NoBlocks<1, S>, S> sums_of(Executor& executor, const Pass& pass,
                                                         const GraphView<S>& arcs, Scratch& scratch,
                                                         const S* features) const {
    return begin_sums(executor, pass.instances(), arcs, NoBlocks<1, S>{}, shape_, features,
                      scratch.segments.data());
  }

  ArcViews<S> arcs_;
  FeatureShape<S> shape_;
  bool adds_bias_;
  BatchLinear<S> neighbour_, self_;
  std::optional<BatchActivatedLinear<Executor, S>> projection_;
  Array<Executor, S> z_;
  const S *input_ = nullptr, *read_ = nullptr;  ///< X, P
};

}  // namespace sheafnn::batch::detail
