/// \file
/// Networks and their layers for sheafnn.torch on a device, by the library's NetworkOperator: one class for both, as on the
/// CPU. A template over the executor; tests run it on the host.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sheafnn/batch/network_operator.hpp>
#include <sheafnn/core/errors.hpp>
#include <string_view>
#include <type_traits>
#include <utility>

#include "network_architecture.hpp"
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
    enqueue(call.stream, [&] {
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
    enqueue(call.stream, [&] {
      network_->backward(static_cast<const S*>(call.output_bar), static_cast<const S*>(call.kl_bar_at),
                         static_cast<S*>(call.features_bar));
      for (const auto& [number, address] : call.gradients) {
        network_->add_gradient(static_cast<sheafnn::layers::ParameterId>(number), reinterpret_cast<S*>(address));
      }
      network_->store_gradients();
    });
  }

 private:
  template <class Work>
  void enqueue(void* stream, const Work& work) {
    const std::lock_guard lock(on_.mutex);
    on_.executor.in_order_of(stream, work);
  }
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
  Index width_;  ///< numbers that a layer reads
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

/// What a device has of a model: its two networks, and layers of them.
///
/// \throws std::invalid_argument  a single layer, an option that it does not have, or out of range
template <class Executor, class Bayesian, class Deterministic>
[[nodiscard]] std::shared_ptr<const Architecture> make_on_device(const Setting& setting) {
  if (setting.kind == Bayesian::kind) return std::make_shared<DeviceArchitecture<Executor, Bayesian>>(setting);
  sheafnn::require(setting.kind == Deterministic::kind, "kind", setting.kind,
                   "CUDA devices have networks and layers of networks: call .cpu() first");
  return std::make_shared<DeviceArchitecture<Executor, Deterministic>>(setting);
}
/// \param maps  what find_model() calls the maps
template <class Executor, class Bayesian, class Deterministic>
[[nodiscard]] constexpr TorchEntry device_entry(std::string_view maps) {
  return entry_of<Bayesian, Deterministic>(maps, make_on_device<Executor, Bayesian, Deterministic>);
}

}  // namespace python
