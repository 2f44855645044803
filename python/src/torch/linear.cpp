/// \file
/// The linear layer of sparse features for sheafnn.torch, by the library's Encoder: its products read the entries that are not 0.
#include <algorithm>
#include <sheafnn/layers/encoder.hpp>
#include <sheafnn/nn/sparse_input.hpp>

#include "pass.hpp"
#include "shared.hpp"

namespace python {

namespace {

template <class S>
class LinearPass final : public Pass {
 public:
  LinearPass(const sheafnn::layers::ParameterTable& table, Index width, std::shared_ptr<const ColumnGraph> graph,
             const sheafnn::NodeFeatures& features)
      : graph_(std::move(graph)),
        width_(width),
        input_(features),
        encoder_(input_, graph_->graph, {.width = width, .activation = false}) {
    static_cast<sheafnn::layers::ParameterTable&>(parameters_) = table;
    parameters_.finish();
    gradient_.resize(parameters_.size());
    bar_.resize(graph_->graph.node_count() * width);
    sheafnn::layers::ParameterList<const S> list(parameters_, parameters_.values().data());
    weights_.declare(list, "lin1", width, input_.columns());
    sheafnn::layers::ParameterList<S> bars(parameters_, gradient_.data());
    weights_bar_.declare(bars, "lin1", width, input_.columns());
  }

  void set_parameter(std::size_t number, const void* values) override {
    const auto id = static_cast<sheafnn::layers::ParameterId>(number);
    const S* from = static_cast<const S*>(values);
    parameters_.set(id, std::vector<S>(from, from + parameters_.info(id).size));
  }
  double forward(const PassOptions& options, const void*, void* output) override {
    execution_ = options.threads;
    encoder_.forward(execution_, weights_);
    std::copy_n(encoder_.output().data(), bar_.size(), static_cast<S*>(output));
    return 0;
  }
  void backward(const void* output_bar, double, void*) override {
    std::copy_n(static_cast<const S*>(output_bar), bar_.size(), bar_.data());
    gradient_.fill(S(0));
    encoder_.backward(execution_, sheafnn::MatrixView<S>(bar_.data(), graph_->graph.node_count(), width_),
                      weights_bar_);
  }
  void gradient(std::size_t number, void* values) const override {
    const std::vector<S> own = parameters_.get(static_cast<sheafnn::layers::ParameterId>(number), gradient_);
    std::copy(own.begin(), own.end(), static_cast<S*>(values));
  }

 private:
  std::shared_ptr<const ColumnGraph> graph_;
  Index width_;
  sheafnn::layers::ParameterSet<S> parameters_;
  sheafnn::layers::SparseInput<S> input_;
  sheafnn::layers::Encoder<S> encoder_;
  sheafnn::layers::LinearWeights<const S> weights_;
  sheafnn::layers::LinearWeights<S> weights_bar_;
  sheafnn::Buffer<S> gradient_, bar_;
  sheafnn::Execution execution_;
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
      std::shared_ptr<const ColumnGraph> graph,
      std::shared_ptr<const sheafnn::NodeFeatures> features) const override {
    sheafnn::require(features->columns() == columns_, "x", features->columns(),
                     sheafnn::detail::concat("columns and indicators of missing values; the layer reads ",
                                             columns_));
    return std::make_unique<LinearPass<S>>(parameters_, width_, std::move(graph), *features);
  }

 private:
  Index width_, columns_;
  sheafnn::layers::ParameterSet<S> parameters_;
};

}  // namespace

std::shared_ptr<const Architecture> make_linear(const Setting& setting) {
  if (setting.wide) return std::make_shared<LinearArchitecture<double>>(setting);
  return std::make_shared<LinearArchitecture<float>>(setting);
}

}  // namespace python
