/// \file
/// What sheafnn.torch calls: architectures of layers and networks in one precision, and passes of them over a graph or a
/// hypergraph. Arrays come as addresses of tensors, row-major; their sizes follow from the architecture and the graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <sheafnn/core/config.hpp>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/graph/features.hpp>
#include <sheafnn/graph/given_map_arrays.hpp>
#include <sheafnn/graph/graph.hpp>
#include <sheafnn/graph/hypergraph.hpp>
#include <sheafnn/nn/activation.hpp>
#include <sheafnn/nn/parameters.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace python {

using sheafnn::Index;

/// What a pass goes over: a graph, a graph with a given sheaf, or a hypergraph.
struct Relations {
  Relations() = default;
  Relations(const Relations&) = delete;
  Relations& operator=(const Relations&) = delete;
  virtual ~Relations() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
};

/// A hypergraph that came as the columns of hyperedge_index.
struct ColumnHypergraph final : Relations {
  static constexpr std::string_view names = "hypergraphs";
  explicit ColumnHypergraph(sheafnn::Hypergraph of) : graph(std::move(of)) {}

  [[nodiscard]] std::string_view name() const override { return "a hypergraph"; }

  sheafnn::Hypergraph graph;
};

/// A graph that came as the columns of edge_index, each edge in both directions.
struct ColumnGraph final : Relations {
  static constexpr std::string_view names = "graphs";

  sheafnn::Graph graph;
  /// Per arc: a column that has it.
  std::vector<Index> column_of_arc;
  Index columns = 0;

  [[nodiscard]] std::string_view name() const override { return "a graph"; }
  /// Whether every column is an arc of its own.
  [[nodiscard]] bool one_column_each() const { return columns == graph.arc_count(); }
  /// For layers whose maps come one for each column.
  ///
  /// \throws std::invalid_argument  loops or repeated columns
  void require_one_column_each() const {
    sheafnn::require(one_column_each(), "edge_index", columns,
                     sheafnn::detail::concat(
                         "columns of ", graph.arc_count(),
                         " different arcs: with maps of arcs, no loops and no repeated columns are allowed"));
  }
};

/// A graph that came as columns, with the maps of a sheaf that is given.
struct ColumnSheaf final : Relations {
  static constexpr std::string_view names = "graphs with a given sheaf";

  ColumnSheaf(std::shared_ptr<const ColumnGraph> of, sheafnn::GivenMapArrays maps)
      : columns(std::move(of)), graph(columns->graph), given(std::move(maps)) {}
  [[nodiscard]] std::string_view name() const override { return "a graph with a given sheaf"; }

  std::shared_ptr<const ColumnGraph> columns;
  const sheafnn::Graph& graph;
  sheafnn::GivenMapArrays given;
};

/// \tparam Columns  ColumnGraph, ColumnSheaf or ColumnHypergraph
/// \throws std::invalid_argument  the others
template <class Columns>
[[nodiscard]] std::shared_ptr<const Columns> columns_of(const std::shared_ptr<const Relations>& relations) {
  auto r = std::dynamic_pointer_cast<const Columns>(relations);
  sheafnn::require(r != nullptr, "relations", relations->name(),
                   sheafnn::detail::concat("the network works on ", Columns::names));
  return r;
}

/// What the results of a pass depend on besides parameters and features.
struct PassOptions {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  double dropout = 0, input_dropout = 0;  ///< in training
  bool training = false;
  bool keep = false;  ///< a backward pass may follow
  int threads = 1;
  /// The activation of layers, after all their steps.
  sheafnn::layers::Activation activation = sheafnn::layers::Activation::identity;
  bool features_stay = false;  ///< the features of a layer stay where they are until the last backward pass
};

/// A parameter or its gradient: position among the architecture's parameters, and address.
using NumberedArray = std::pair<std::size_t, std::uintptr_t>;

/// A forward pass as callers ask for it. On a device, all addresses are of its memory.
struct ForwardCall {
  PassOptions options;
  std::span<const NumberedArray> parameters;
  const void* features = nullptr;  ///< of layers; null: networks read the features that the pass was made for
  void* output = nullptr;          ///< overwritten
  void* stream = nullptr;          ///< of a device, in whose order the pass takes its place
  void* kl = nullptr;              ///< of a device: where the KL term goes; null: not wanted
};
/// A backward pass: derivatives of ⟨output_bar, output⟩ + kl_bar · KL. All but output_bar may be left out.
struct BackwardCall {
  const void* output_bar = nullptr;
  double kl_bar = 0;
  void* features_bar = nullptr;              ///< overwritten
  std::span<const NumberedArray> gradients;  ///< overwritten
  void* stream = nullptr;                    ///< of a device
  const void* kl_bar_at = nullptr;           ///< on a device, in place of kl_bar
};

/// y = act(z), for elements of arrays.
template <class S>
void activate_numbers(int threads, sheafnn::layers::Activation activation, Index count, const S* z, S* y);
/// z_bar = sign · act′(z) ∘ y_bar.
template <class S>
void activate_numbers_backward(int threads, sheafnn::layers::Activation activation, Index count, const S* z,
                               const S* y_bar, S sign, S* z_bar);

/// Parameters as users and files see them.
struct Shapes {
  std::vector<std::string> names;
  std::vector<std::vector<Index>> shapes;
};

[[nodiscard]] inline Shapes shapes_of(const sheafnn::layers::ParameterTable& table) {
  Shapes r;
  for (const sheafnn::layers::ParameterInfo& info : table.info()) {
    r.names.push_back(info.name);
    r.shapes.push_back(info.shape);
  }
  return r;
}
/// The values of a fresh set of parameters. \param seed  selects them
template <class S>
[[nodiscard]] std::vector<std::vector<double>> initial_of(sheafnn::layers::ParameterSet<S> parameters,
                                                          std::uint64_t seed) {
  parameters.initialise(seed);
  std::vector<std::vector<double>> r;
  for (std::size_t i = 0; i < parameters.info().size(); ++i) {
    const std::vector<S> values =
        parameters.get(static_cast<sheafnn::layers::ParameterId>(i), parameters.values());
    r.emplace_back(values.begin(), values.end());
  }
  return r;
}

/// A forward pass over one graph with its backward passes, for one caller at a time; then another.
class Pass {
 public:
  Pass() = default;
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;
  virtual ~Pass() = default;

  /// \returns the KL term, 0 without one and on devices
  virtual double run(const ForwardCall& call) = 0;
  /// May be called again.
  virtual void differentiate(const BackwardCall& call) = 0;
  /// Whether differentiate() reads nothing of run(), so that any pass over the same graph and features can do it.
  [[nodiscard]] virtual bool keeps_nothing() const { return false; }
};

/// A pass on the CPU, step by step.
class HostPass : public Pass {
 public:
  double run(const ForwardCall& call) final {
    for (const auto& [number, address] : call.parameters) {
      set_parameter(number, reinterpret_cast<const void*>(address));
    }
    return forward(call.options, call.features, call.output);
  }
  void differentiate(const BackwardCall& call) final {
    backward(call.output_bar, call.kl_bar, call.features_bar);
    for (const auto& [number, address] : call.gradients) gradient(number, reinterpret_cast<void*>(address));
  }

 protected:
  /// Copies a parameter.
  virtual void set_parameter(std::size_t number, const void* values) = 0;
  virtual double forward(const PassOptions& options, const void* features, void* output) = 0;
  virtual void backward(const void* output_bar, double kl_bar, void* features_bar) = 0;
  /// The gradient of the last backward(). \param values  overwritten
  virtual void gradient(std::size_t number, void* values) const = 0;
};

/// A layer or a network in one precision, without its parameters' values.
class Architecture {
 public:
  Architecture() = default;
  Architecture(const Architecture&) = delete;
  Architecture& operator=(const Architecture&) = delete;
  virtual ~Architecture() = default;

  [[nodiscard]] virtual Shapes parameters() const = 0;
  /// Values of a fresh model, in the order of parameters().
  [[nodiscard]] virtual std::vector<std::vector<double>> initial(std::uint64_t seed) const = 0;
  /// h = d' · channels, values per node that a layer reads.
  [[nodiscard]] virtual Index width() const = 0;
  /// Values per node that a layer returns: h, or 2h for complex features.
  [[nodiscard]] virtual Index row() const { return width(); }
  /// Are maps drawn from a posterior?
  [[nodiscard]] virtual bool bayesian() const { return false; }
  /// Does it go over a hypergraph? Otherwise over a graph.
  [[nodiscard]] virtual bool on_hypergraphs() const { return false; }
  /// Are its maps given with the graph?
  [[nodiscard]] virtual bool has_given_sheaf() const { return false; }
  /// What checkpoints say of the model.
  [[nodiscard]] virtual std::map<std::string, std::string> metadata() const = 0;
  /// \param relations  a graph, with a sheaf where the network's maps are given; or the hypergraph of a network on hypergraphs
  /// \param features   for networks; null for layers
  [[nodiscard]] virtual std::unique_ptr<Pass> make_pass(
      const std::shared_ptr<const Relations>& relations,
      std::shared_ptr<const sheafnn::NodeFeatures> features) const = 0;
};

/// Passes of an architecture over a graph or a hypergraph that are not in use. Later passes reuse their buffers.
class Plan : public std::enable_shared_from_this<Plan> {
 public:
  Plan(std::shared_ptr<const Architecture> architecture, std::shared_ptr<const Relations> relations,
       std::shared_ptr<const sheafnn::NodeFeatures> features)
      : architecture_(std::move(architecture)), relations_(std::move(relations)), features_(std::move(features)) {}

  [[nodiscard]] std::unique_ptr<Pass> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<Pass> r = std::move(free_.back());
        free_.pop_back();
        return r;
      }
    }
    return architecture_->make_pass(relations_, features_);
  }
  void give_back(std::unique_ptr<Pass> pass) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(pass));
  }

 private:
  std::shared_ptr<const Architecture> architecture_;
  std::shared_ptr<const Relations> relations_;
  std::shared_ptr<const sheafnn::NodeFeatures> features_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Pass>> free_;
};

/// The names of the layers that are not part of a network.
inline constexpr std::string_view diffusion_kind = "diffusion", learner_kind = "learner", linear_kind = "linear";

/// What an architecture is made from.
struct Setting {
  std::string kind;  ///< of a network as checkpoints name it, or of a layer
  std::string maps;  ///< of the family, or what stands for maps of a network's own
  Index stalk_dimension = 1;
  bool wide = false;  ///< double, else float
  Index features = 1, classes = 1;
  std::map<std::string, std::string> options;
  int device = -1;  ///< index of a CUDA device; -1: the CPU
};

/// The architectures of one model in one precision.
struct TorchEntry {
  std::string_view bayesian, deterministic;  ///< its two networks
  std::string_view maps;
  Index stalk_dimension;
  bool wide;
  /// \throws std::invalid_argument  an option that it does not have, or out of range
  std::shared_ptr<const Architecture> (*make)(const Setting& setting);
};

/// The linear layer of sparse features, from `features` to `classes` outputs.
[[nodiscard]] std::shared_ptr<const Architecture> make_linear(const Setting& setting);
/// \throws std::invalid_argument  not in this build, an option that it does not have, or out of range
[[nodiscard]] std::shared_ptr<const Architecture> make_architecture(const Setting& setting);

}  // namespace python
