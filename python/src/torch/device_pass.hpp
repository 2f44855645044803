/// \file
/// Networks and their layers for sheafnn.torch on a device, by the library's NetworkOperator: one class for both, as on the
/// CPU. Diffusion layers and sheaf learners by its DiffusionOperator and LearnerOperator. Templates over the executor; tests run
/// them on the host.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sheafnn/batch/layer_operators.hpp>
#include <sheafnn/batch/network_operator.hpp>
#include <string_view>
#include <type_traits>
#include <utility>

#include "layer_architectures.hpp"
#include "make_architecture.hpp"
#include "pass.hpp"

namespace python {

/// An executor that all passes on a device share: what they enqueue is one sequence, whatever streams they are called in.
template <class Executor>
struct SharedExecutor {
  std::mutex mutex;
  Executor executor;

  explicit SharedExecutor(int device) : executor(make(device)) {}

  /// The device's. It is not released when the process ends: the driver may be gone by then.
  ///
  /// \throws what the executor throws where the device cannot be used
  [[nodiscard]] static SharedExecutor& of(int device) {
    static std::mutex all_mutex;
    static auto* const all = new std::map<int, std::unique_ptr<SharedExecutor>>();
    const std::lock_guard lock(all_mutex);
    std::unique_ptr<SharedExecutor>& own = (*all)[device];
    if (!own) own = std::make_unique<SharedExecutor>(device);
    return *own;
  }

  /// Puts work in the order of a stream of the caller's.
  template <class Work>
  void enqueue(void* stream, const Work& work) {
    const std::lock_guard lock(mutex);
    executor.in_order_of(stream, work);
  }

 private:
  [[nodiscard]] static Executor make(int device) {
    if constexpr (std::is_constructible_v<Executor, int>) {
      return Executor(device);
    } else {
      return Executor();
    }
  }
};

template <class Executor, class Model>
class DevicePass final : public Pass {
  using S = typename Model::Scalar;
  using Network = sheafnn::batch::NetworkOperator<Executor, Model>;

 public:
  /// \param model  its parameters are not read
  DevicePass(SharedExecutor<Executor>& on, const Model& model, std::shared_ptr<const ColumnsOf<Model>> graph,
             const std::shared_ptr<const sheafnn::NodeFeatures>& features)
      : on_(on), width_(graph->graph.node_count() * model.hidden_width()) {
    const std::lock_guard lock(on.mutex);
    network_.emplace(on.executor, model, graph->graph,
                     features ? *features : no_features(model.options().features, graph->graph.node_count()));
  }

  double run(const ForwardCall& call) override {
    on_.enqueue(call.stream, [&] {
      for (const auto& [number, address] : call.parameters) {
        network_->set_parameter(static_cast<sheafnn::layers::ParameterId>(number),
                                reinterpret_cast<const S*>(address));
      }
      const sheafnn::ForwardPass<S> pass = forward_pass<S>(call.options);
      S *const output = static_cast<S*>(call.output), *const kl = static_cast<S*>(call.kl);
      if constexpr (Network::takes_embeddings) {
        if (call.features != nullptr)
          return network_->forward(pass, embedding(call), call.options.activation, output, kl);
      }
      network_->forward(pass, output, kl);
    });
    return 0;
  }
  void differentiate(const BackwardCall& call) override {
    on_.enqueue(call.stream, [&] {
      network_->backward(static_cast<const S*>(call.output_bar), static_cast<const S*>(call.kl_bar_at),
                         static_cast<S*>(call.features_bar));
      for (const auto& [number, address] : call.gradients) {
        network_->add_gradient(static_cast<sheafnn::layers::ParameterId>(number), reinterpret_cast<S*>(address));
      }
      network_->store_gradients();
    });
  }

 private:
  /// Where the features of a layer stay until the last backward pass.
  [[nodiscard]] const S* embedding(const ForwardCall& call) {
    const S* given = static_cast<const S*>(call.features);
    if (call.options.features_stay) return given;
    if (embedding_.size() == 0) embedding_ = {on_.executor, "embeddings", width_};
    on_.executor.launch(width_, 1,
                        sheafnn::batch::detail::CopyToInstances<S>{given, width_, 1, embedding_.data()});
    return embedding_.data();
  }

  SharedExecutor<Executor>& on_;
  Index width_;  ///< values that a layer reads
  std::optional<Network> network_;
  sheafnn::batch::Array<Executor, S> embedding_;
};

template <class Executor, class Model>
class DeviceArchitecture final : public ModelArchitecture<Model> {
 public:
  explicit DeviceArchitecture(const Setting& setting)
      : ModelArchitecture<Model>(setting), on_(SharedExecutor<Executor>::of(setting.device)) {}

  [[nodiscard]] std::unique_ptr<Pass> make_pass(
      const std::shared_ptr<const Relations>& relations,
      std::shared_ptr<const sheafnn::NodeFeatures> features) const override {
    auto columns = columns_of<ColumnsOf<Model>>(relations);
    const Model model = this->model_of_pass(*columns, features != nullptr);
    return std::make_unique<DevicePass<Executor, Model>>(on_, model, std::move(columns), features);
  }

 private:
  SharedExecutor<Executor>& on_;
};

/// A diffusion layer or a sheaf learner. \tparam Operator  of batch/layer_operators.hpp
template <class Executor, class Operator, class S>
class DeviceLayerPass final : public Pass {
 public:
  template <class... Arguments>
  DeviceLayerPass(SharedExecutor<Executor>& on, const ColumnGraph& graph, const Arguments&... arguments)
      : on_(on) {
    graph.require_one_column_each();
    const std::lock_guard lock(on.mutex);
    layer_.emplace(on.executor, arguments..., graph.graph, graph.column_of_arc);
  }

  double run(const ForwardCall& call) override {
    on_.enqueue(call.stream, [&] {
      for (const auto& [number, address] : call.parameters)
        layer_->set_parameter(number, reinterpret_cast<const S*>(address));
      layer_->forward(forward_pass<S>(call.options), static_cast<const S*>(call.features),
                      static_cast<S*>(call.output));
      if (call.kl != nullptr) on_.executor.zero(static_cast<S*>(call.kl), 1);
    });
    return 0;
  }
  void differentiate(const BackwardCall& call) override {
    on_.enqueue(call.stream, [&] {
      layer_->backward(static_cast<const S*>(call.output_bar), static_cast<S*>(call.features_bar));
      for (const auto& [number, address] : call.gradients)
        layer_->add_gradient(number, reinterpret_cast<S*>(address));
      layer_->store_gradients();
    });
  }

 private:
  SharedExecutor<Executor>& on_;
  std::optional<Operator> layer_;
};

template <class Executor, class Family, class S>
class DeviceDiffusionArchitecture final : public DiffusionArchitecture<Family, S> {
 public:
  explicit DeviceDiffusionArchitecture(const Setting& setting)
      : DiffusionArchitecture<Family, S>(setting), on_(SharedExecutor<Executor>::of(setting.device)) {}

  [[nodiscard]] std::unique_ptr<Pass> make_pass(const std::shared_ptr<const Relations>& relations,
                                                std::shared_ptr<const sheafnn::NodeFeatures>) const override {
    using Operator = sheafnn::batch::DiffusionOperator<Executor, Family, S>;
    return std::make_unique<DeviceLayerPass<Executor, Operator, S>>(on_, *columns_of<ColumnGraph>(relations),
                                                                    this->parameters_, this->at_, this->options_,
                                                                    this->weighted_);
  }

 private:
  SharedExecutor<Executor>& on_;
};
template <class Executor, class Model>
class DeviceLearnerArchitecture final : public LearnerArchitecture<Model> {
 public:
  explicit DeviceLearnerArchitecture(const Setting& setting)
      : LearnerArchitecture<Model>(setting), on_(SharedExecutor<Executor>::of(setting.device)) {}

  [[nodiscard]] std::unique_ptr<Pass> make_pass(const std::shared_ptr<const Relations>& relations,
                                                std::shared_ptr<const sheafnn::NodeFeatures>) const override {
    using S = typename Model::Scalar;
    using Operator = sheafnn::batch::LearnerOperator<Executor, typename Model::Family, S>;
    return std::make_unique<DeviceLayerPass<Executor, Operator, S>>(on_, *columns_of<ColumnGraph>(relations),
                                                                    this->parameters_, this->at_,
                                                                    this->setting_.sizes, this->setting_.point);
  }

 private:
  SharedExecutor<Executor>& on_;
};

/// Where a device computes.
template <class Executor>
struct OnDevice {
  template <class Model>
  using Network = DeviceArchitecture<Executor, Model>;
  template <class Family, class S>
  using Diffusion = DeviceDiffusionArchitecture<Executor, Family, S>;
  template <class Model>
  using Learner = DeviceLearnerArchitecture<Executor, Model>;
};

/// \param maps  what find_model() calls the maps
template <class Executor, class Bayesian, class Deterministic>
[[nodiscard]] constexpr TorchEntry device_entry(std::string_view maps) {
  return entry_of<Bayesian, Deterministic>(maps, make_of<OnDevice<Executor>, Bayesian, Deterministic>);
}

}  // namespace python
