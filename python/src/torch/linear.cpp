/// \file
/// Linear layers for sheafnn.torch. On sparse features the library's SparseInput computes the products from the entries that are not
/// 0; on features of few columns its dense products do.
#include "linear.hpp"

#include <algorithm>
#include <array>
#include <sheafnn/core/tile.hpp>
#include <sheafnn/layers/weights.hpp>
#include <sheafnn/nn/dense.hpp>
#include <sheafnn/nn/sparse_input.hpp>
#include <span>

#include "shared.hpp"

namespace python {

namespace {

template <class S>
class LinearPass final : public HostPass {
 public:
  LinearPass(const sheafnn::layers::ParameterTable& table, Index width, const sheafnn::NodeFeatures& features)
      : width_(width), input_(features), output_(input_.rows() * width), work_(input_.work_size(width, 1)) {
    static_cast<sheafnn::layers::ParameterTable&>(parameters_) = table;
    parameters_.finish();
    gradient_.resize(parameters_.size());
    sheafnn::layers::ParameterList<const S> list(parameters_, parameters_.values().data());
    weights_.declare(list, "lin1", width, input_.columns());
    sheafnn::layers::ParameterList<S> bars(parameters_, gradient_.data());
    weights_bar_.declare(bars, "lin1", width, input_.columns());
  }

  void set_parameter(std::size_t number, const void* values) override {
    const auto id = static_cast<sheafnn::layers::ParameterId>(number);
    const std::span own(static_cast<const S*>(values), static_cast<std::size_t>(parameters_.info(id).size));
    std::vector<S>& last = given_[number];
    if (std::equal(own.begin(), own.end(), last.begin(), last.end())) return;
    computed_ = false;
    last.assign(own.begin(), own.end());
    parameters_.set(id, own);
  }
  /// The output of the last call, where its parameters are the same: in an evaluation and the training step after it.
  double forward(const PassOptions& options, const void*, void* output) override {
    execution_ = options.threads;
    if (!computed_) {
      input_.forward(execution_, weights_.weight.data(), weights_.bias.data(), width_, output_.data(),
                     work_.data());
    }
    computed_ = true;
    std::copy_n(output_.data(), output_.size(), static_cast<S*>(output));
    return 0;
  }
  void backward(const void* output_bar, double, void*) override {
    const S* bar = static_cast<const S*>(output_bar);
    input_.backward(execution_, input_.values(), bar, width_, weights_bar_.weight.data());
    std::ranges::fill(weights_bar_.bias, S(0));
    sheafnn::detail::add_column_sums(input_.rows(), width_, bar, width_, weights_bar_.bias.data());
  }
  void gradient(std::size_t number, void* values) const override {
    const auto id = static_cast<sheafnn::layers::ParameterId>(number);
    parameters_.get(id, gradient_, {static_cast<S*>(values), static_cast<std::size_t>(parameters_.info(id).size)});
  }
  [[nodiscard]] bool keeps_nothing() const override { return true; }

 private:
  Index width_;
  sheafnn::layers::ParameterSet<S> parameters_;
  sheafnn::layers::SparseInput<S> input_;
  sheafnn::Buffer<S> output_, work_;
  sheafnn::layers::LinearWeights<const S> weights_;
  sheafnn::layers::LinearWeights<S> weights_bar_;
  sheafnn::Buffer<S> gradient_;
  sheafnn::Execution execution_;
  std::array<std::vector<S>, 2> given_;  ///< the parameters of the last call, as they came
  bool computed_ = false;                ///< was the output made with these parameters?
};

template <class S>
class LinearArchitecture final : public Architecture {
 public:
  explicit LinearArchitecture(const Setting& setting) : width_(setting.classes), columns_(setting.features) {
    sheafnn::layers::ParameterList<sheafnn::layers::ParameterSlot> list(parameters_);
    sheafnn::layers::LinearWeights<sheafnn::layers::ParameterSlot>().declare(list, "lin1", width_, columns_);
  }

  [[nodiscard]] Shapes parameters() const override { return shapes_of(parameters_); }
  [[nodiscard]] std::vector<std::vector<double>> initial(std::uint64_t seed) const override {
    return initial_of(parameters_, seed);
  }
  [[nodiscard]] Index width() const override { return width_; }
  [[nodiscard]] std::map<std::string, std::string> metadata() const override { return {}; }
  /// \throws std::invalid_argument  features of another number of columns, a missing value
  [[nodiscard]] std::unique_ptr<Pass> make_pass(
      const std::shared_ptr<const Relations>&,
      std::shared_ptr<const sheafnn::NodeFeatures> features) const override {
    sheafnn::require(features->columns() == columns_, "x", features->columns(),
                     sheafnn::detail::concat("columns and indicators of missing values; the layer reads ",
                                             columns_));
    return std::make_unique<LinearPass<S>>(parameters_, width_, *features);
  }

 private:
  Index width_, columns_;
  sheafnn::layers::ParameterSet<S> parameters_;
};

/// body.template operator()<A, T>(tile) for all elements.
template <class S, class Body>
void for_numbers(int threads, sheafnn::layers::Activation activation, Index count, const Body& body) {
  sheafnn::layers::with_activation(activation, [&]<sheafnn::layers::Activation A>() {
    sheafnn::parallel_for(threads, count, 2048, [&](Index begin, Index end) {
      sheafnn::detail::for_tiles<S>(begin, end, [&]<class T>(auto i) { body.template operator()<A, T>(i); });
    });
  });
}

}  // namespace

template <class S>
void activate_numbers(int threads, sheafnn::layers::Activation activation, Index count, const S* z, S* y) {
  for_numbers<S>(threads, activation, count, [&]<sheafnn::layers::Activation A, class T>(auto i) {
    i.store(y + i, sheafnn::layers::activate<A>(T(i.load(z + i))));
  });
}
template <class S>
void activate_numbers_backward(int threads, sheafnn::layers::Activation activation, Index count, const S* z,
                               const S* y_bar, S sign, S* z_bar) {
  for_numbers<S>(threads, activation, count, [&]<sheafnn::layers::Activation A, class T>(auto i) {
    i.store(z_bar + i, T(sign) * sheafnn::layers::activation_derivative<A>(T(i.load(z + i))) * i.load(y_bar + i));
  });
}
template void activate_numbers(int, sheafnn::layers::Activation, Index, const float*, float*);
template void activate_numbers(int, sheafnn::layers::Activation, Index, const double*, double*);
template void activate_numbers_backward(int, sheafnn::layers::Activation, Index, const float*, const float*, float,
                                        float*);
template void activate_numbers_backward(int, sheafnn::layers::Activation, Index, const double*, const double*,
                                        double, double*);

template <class S>
void linear_layer(int threads, Index rows, Index inputs, Index outputs, const LinearArrays<const S>& of, S* y) {
  sheafnn::Buffer<S> transposed(inputs * outputs);
  sheafnn::detail::transpose_into(outputs, inputs, of.weight, transposed.data(), outputs);
  const sheafnn::MatrixView<const S> x(of.x, rows, inputs), weight(transposed.data(), inputs, outputs);
  const sheafnn::MatrixView<S> result(y, rows, outputs);
  sheafnn::parallel_for(threads, rows, 64, [&](Index begin, Index end) {
    const Index count = end - begin;
    sheafnn::detail::multiply_block_from(x.middle_rows(begin, count), weight, {of.bias, count, outputs, 0, 1},
                                         result.middle_rows(begin, count));
  });
}
template <class S>
void linear_layer_backward(int threads, Index rows, Index inputs, Index outputs, const S* x, const S* weight,
                           const S* y_bar, const LinearArrays<S>& bars) {
  const sheafnn::MatrixView<const S> features(x, rows, inputs), bar(y_bar, rows, outputs);
  if (bars.x != nullptr) {
    sheafnn::detail::multiply_dense(threads, bar, {weight, outputs, inputs},
                                    sheafnn::MatrixView<S>(bars.x, rows, inputs), false);
  }
  sheafnn::detail::multiply_dense(threads, sheafnn::detail::transposed(bar), features,
                                  sheafnn::MatrixView<S>(bars.weight, outputs, inputs), false);
  std::fill_n(bars.bias, outputs, S(0));
  sheafnn::detail::add_column_sums(rows, outputs, y_bar, outputs, bars.bias);
}
template void linear_layer(int, Index, Index, Index, const LinearArrays<const float>&, float*);
template void linear_layer(int, Index, Index, Index, const LinearArrays<const double>&, double*);
template void linear_layer_backward(int, Index, Index, Index, const float*, const float*, const float*,
                                    const LinearArrays<float>&);
template void linear_layer_backward(int, Index, Index, Index, const double*, const double*, const double*,
                                    const LinearArrays<double>&);

std::shared_ptr<const Architecture> make_linear(const Setting& setting) {
  if (setting.wide) return std::make_shared<LinearArchitecture<double>>(setting);
  return std::make_shared<LinearArchitecture<float>>(setting);
}

}  // namespace python
