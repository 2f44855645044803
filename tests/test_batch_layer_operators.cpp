/// \file
/// DiffusionOperator and LearnerOperator on the host against the CPU's diffusion layer and sheaf learner: outputs, and derivatives in
/// features, parameters, maps and edge weights.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "layer_operator_checks.hpp"
#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/layers/sheaf_learner.hpp"

namespace test_batch_layer_operators {
namespace {

using namespace sheafnn;
using batch::HostExecutor;
using batch_checks::relative;
using layer_operator_checks::diffuse;
using layer_operator_checks::Diffused;
using layer_operator_checks::pass_of;
using layer_operator_checks::reversed_columns;
using operator_checks::numbers;
using S = double;
using Array = batch::Array<HostExecutor, S>;

constexpr double bound = 1e-11;  // as of batches: tests/test_batch_operator.cpp

/// Rows of columns as rows of arcs, and back.
std::vector<S> reordered(const std::vector<S>& rows, const std::vector<Index>& column_of_arc, Index size) {
  std::vector<S> r(rows.size());
  for (std::size_t arc = 0; arc < column_of_arc.size(); ++arc) {
    std::copy_n(rows.begin() + column_of_arc[arc] * size, size, r.begin() + static_cast<Index>(arc) * size);
  }
  return r;
}

template <class Family>
void compare_diffusion(const layers::SheafDiffusionOptions& options, bool weighted, bool training,
                       Index nodes = 83) {
  const Graph graph = batch_checks::small_problem(false, nodes).graph;
  const std::vector<Index> column = reversed_columns(graph);
  layers::SheafDiffusionLayer<Family, S> layer(graph, options);
  const Index d = layer.coordinates(), f = options.channels, n = graph.node_count(), m = graph.edge_count();
  const std::vector<S> x = numbers<S>(1, n * d * f), maps = numbers<S>(2, 2 * m * Family::map_size),
                       out_bar = numbers<S>(3, n * d * f), left = numbers<S>(4, d * d),
                       right = numbers<S>(5, f * f), epsilon = numbers<S>(6, d);
  std::vector<S> weights = numbers<S>(7, weighted ? m : 0);
  for (S& w : weights) w = 1 + 0.4 * w;
  const ForwardPass<S> pass = pass_of(training, 0.4);

  const std::vector<S> of_arcs = reordered(maps, column, Family::map_size);
  const auto matrix = [](const std::vector<S>& values, Index rows, Index columns) {
    return MatrixView<const S>(values.data(), rows, columns);
  };
  layers::DiffusionWeights<const S> own;
  if (options.left) own.left = matrix(left, d, d);
  if (options.right) own.right = matrix(right, f, f);
  own.epsilon = epsilon;
  const MatrixView<const S> map_rows =
      maps.empty() ? MatrixView<const S>() : matrix(of_arcs, 2 * m, Family::map_size);
  const auto features = [&](auto& values) { return FeatureView(values.data(), n, d, f); };
  const layers::Dropout dropout{training ? 0.4 : 0.0, {pass.seed, Purpose::layer_dropout, pass.epoch}};
  const auto expected = layer.forward(map_rows, own, features(x), weights, dropout);
  const std::vector<double> expected_out(expected.data(), expected.data() + n * d * f);
  std::vector<S> x_bar(x.size()), maps_bar(maps.size()), weights_bar(weights.size()),
      left_bar(options.left ? d * d : 0), right_bar(options.right ? f * f : 0),
      epsilon_bar(static_cast<std::size_t>(d));
  layers::DiffusionWeights<S> bars;
  if (options.left) bars.left = {left_bar.data(), d, d};
  if (options.right) bars.right = {right_bar.data(), f, f};
  bars.epsilon = epsilon_bar;
  const bool learned = sheaf::is_learned<Family>;
  layer.backward(features(out_bar), features(x_bar),
                 maps.empty() ? MatrixView<S>() : MatrixView<S>(maps_bar.data(), 2 * m, Family::map_size), bars,
                 learned ? std::span<S>(weights_bar) : std::span<S>());

  HostExecutor executor;
  const Diffused of = diffuse<Family>(executor, graph, options,
                                      {x, out_bar, options.left ? left : std::vector<S>(),
                                       options.right ? right : std::vector<S>(), epsilon, maps, weights},
                                      pass);
  CHECK(relative(of.out, expected_out) <= bound);
  CHECK(relative(of.x_bar, x_bar) <= bound);
  CHECK(relative(of.gradient[0], left_bar) <= bound);
  CHECK(relative(of.gradient[1], right_bar) <= bound);
  CHECK(relative(of.gradient[2], epsilon_bar) <= bound);
  CHECK(relative(reordered(of.gradient[3], column, Family::map_size), maps_bar) <= bound);
  CHECK(relative(of.gradient[4], weights_bar) <= bound);
}

template <class Family>
void compare_learner(const layers::SheafLearnerOptions& options, const PointMap<Family>& point) {
  const Graph graph = batch_checks::small_problem().graph;
  const std::vector<Index> column = reversed_columns(graph);
  layers::ParameterSet<S> parameters;
  layers::SheafLearnerWeights<layers::ParameterSlot> at;
  layers::ParameterList<layers::ParameterSlot> list(parameters);
  at.declare(list, options, 0);
  parameters.finish();
  tiny::disturb(parameters, 4, 0.5);
  const Index n = graph.node_count(), m = graph.edge_count(), edge_weights = options.edge_weights ? m : 0,
              size = Family::map_size, total = 2 * m * size + edge_weights;
  const std::vector<S> x = numbers<S>(1, n * options.inputs), out_bar = numbers<S>(2, total);

  HostExecutor executor;
  batch::LearnerOperator<HostExecutor, Family, S> op(executor, parameters, at, options, point, graph, column);
  std::vector<Array> arrays, gradients;
  for (std::size_t i = 0; i < parameters.info().size(); ++i) {
    const auto id = static_cast<layers::ParameterId>(i);
    arrays.emplace_back(executor, "test", parameters.get(id, parameters.values()));
    gradients.emplace_back(executor, "test", parameters.info(id).size);
  }
  Array in(executor, "test", x), out(executor, "test", total), bar(executor, "test", out_bar),
      in_bar(executor, "test", n * options.inputs);
  const auto output = [&](const std::vector<S>& features) {
    in.upload(features);
    for (std::size_t i = 0; i < arrays.size(); ++i) op.set_parameter(i, arrays[i].data());
    op.forward({}, in.data(), out.data());
    return out.download();
  };
  const std::vector<S> own = output(x);
  for (int i = 0; i < 2; ++i) op.backward(bar.data(), in_bar.data());
  for (std::size_t i = 0; i < gradients.size(); ++i) op.add_gradient(i, gradients[i].data());
  op.store_gradients();

  // Outputs by the CPU's learner and point map.
  layers::EdgeBlocks<S> blocks(graph);
  layers::SheafLearner<S> learner(graph, blocks, options);
  layers::SheafLearnerWeights<const S> weights;
  layers::ParameterList<const S> values(parameters, std::as_const(parameters.values()).data());
  weights.declare(values, options, 0);
  learner.forward({}, weights, MatrixView<const S>(x.data(), n, options.inputs));
  using P = math::Pack<S, lanes<S>>;
  std::vector<S> expected(static_cast<std::size_t>(total));
  for (Index block = 0; block < blocks.block_count(); ++block) {
    for (int side = 0; side < 2; ++side) {
      P raw[detail::array_size(PointMap<Family>::size)];
      typename Family::template Map<P> map;
      detail::load_lanes<PointMap<Family>::size>(learner.raw(block, side), raw);
      point.map(raw, map);
      for (int k = 0; k < size; ++k) {
        constexpr int columns = Family::template Map<P>::ColsAtCompileTime;
        S entry[lanes<S>];
        map(k / columns, k % columns).store(entry);
        for (int lane = 0; lane < blocks.lane_count(block); ++lane) {
          const Index c = column[static_cast<std::size_t>(blocks.arcs(block, side)[lane])];
          expected[static_cast<std::size_t>(c * size + k)] = entry[lane];
        }
      }
    }
  }
  if (edge_weights > 0) std::copy_n(learner.edge_weights(), m, expected.begin() + 2 * m * size);
  CHECK(relative(own, expected) <= bound);

  // Gradients along every coordinate of the parameters, and some of the features.
  const auto loss = [&](const std::vector<S>& features) {
    const std::vector<S> values_of = output(features);
    S r = 0;
    for (std::size_t i = 0; i < values_of.size(); ++i) r += values_of[i] * out_bar[i];
    return r;
  };
  constexpr S step = 1e-6;
  const std::vector<S> x_bar = in_bar.download();
  std::vector<S> analytic, numeric;
  for (std::size_t k = 0; k < x.size(); k += 17) {
    std::vector<S> up = x, down = x;
    up[k] += step;
    down[k] -= step;
    analytic.push_back(x_bar[k]);
    numeric.push_back((loss(up) - loss(down)) / (2 * step));
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const std::vector<S> at_point = arrays[i].download(), gradient = gradients[i].download();
    for (std::size_t k = 0; k < at_point.size(); ++k) {
      S side[2];
      for (int s = 0; s < 2; ++s) {
        std::vector<S> moved = at_point;
        moved[k] += s == 0 ? step : -step;
        arrays[i].upload(moved);
        side[s] = loss(x);
      }
      arrays[i].upload(at_point);
      analytic.push_back(gradient[k]);
      numeric.push_back((side[0] - side[1]) / (2 * step));
    }
  }
  CHECK(relative(analytic, numeric) <= 1e-7);
}

}  // namespace

TEST_CASE_TEMPLATE("diffusion with maps of columns agrees with the CPU", Family, Diagonal<2>, SpecialOrthogonal<3>,
                   GeneralLinear<2>, Identity<2>) {
  for (const bool weighted : {false, true}) {
    compare_diffusion<Family>({.channels = 5}, weighted, true);
    compare_diffusion<Family>({.channels = 4, .left = false, .activation = false}, weighted, false);
    compare_diffusion<Family>({.channels = 3, .right = false, .normalisation = Normalisation::block}, weighted,
                              true);
    compare_diffusion<Family>(
        {.channels = 8, .normalisation = Normalisation::none, .add_lp = true, .add_hp = true}, weighted, true);
  }
  compare_diffusion<Family>({.channels = 8, .add_hp = true}, false, true, 330);  // arcs of a node in segments
}

TEST_CASE("learners that give maps of columns agree with the CPU") {
  layers::SheafLearnerOptions o;
  o.inputs = 4;
  o.channels = 2;
  using Rotations = PointMap<SpecialOrthogonal<2>>;
  o.mean = Rotations::size;
  o.edge_weights = true;
  compare_learner<SpecialOrthogonal<2>>(o, {rotation::RotationParametrisation::cayley, SheafActivation::tanh});
  o.hidden_layers = 1;
  o.width = 3;
  compare_learner<SpecialOrthogonal<2>>(o, {rotation::RotationParametrisation::cayley, SheafActivation::tanh});
  o.edge_weights = false;
  o.mean = PointMap<GeneralLinear<2>>::size;
  compare_learner<GeneralLinear<2>>(o, {});
}

}  // namespace test_batch_layer_operators
