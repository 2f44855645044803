/// \file
/// Models whose epochs are measured, each compiled in a file of its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <sheafnn/batch/trainer.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <vector>

#include "gpu/executor.hpp"

namespace benchmarks {

/// What is trained: `count` models side by side, with seeds 0, 1, … and the splits of the data in turn.
struct GpuTask {
  const sheafnn::Dataset& data;
  sheafnn::Index count = 1, layers = 4;
  sheafnn::batch::EvaluationOrder order = sheafnn::batch::EvaluationOrder::automatic;
  sheafnn::Index degree = 0;  ///< of each layer's Chebyshev filter; 0: no filter
};

/// Trainings whose epoch the executor has recorded. They never finish.
class GpuTrainings {
 public:
  virtual ~GpuTrainings() = default;
  /// Are all parameters of all models finite?
  [[nodiscard]] virtual bool finite() = 0;
};

/// Builds the trainings and records their epoch: stalk dimension 3, 16 channels, input dropout 0.5, dropout 0.3,
/// three posterior samples at evaluation, as the epochs of the CPU's table (../epochs.cpp).
using GpuModel = std::unique_ptr<GpuTrainings> (*)(Executor& executor, const GpuTask& task);

template <class Model>
class ModelTrainings final : public GpuTrainings {
 public:
  ModelTrainings(Executor& executor, const GpuTask& task)
      : models_(models(task)), trainer_(executor, task.data, trainings(task), task.order) {
    trainer_.record_epoch();
  }
  [[nodiscard]] bool finite() override {
    const auto values = trainer_.network().parameters().download();
    return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  }

 private:
  static std::vector<Model> models(const GpuTask& task) {
    sheafnn::ModelOptions options;
    options.features = task.data.feature_count();
    options.classes = task.data.class_count;
    options.layers = task.layers;
    if (task.degree > 0) {
      options.filter.basis = sheafnn::PolynomialBasis::chebyshev;
      options.filter.degree = task.degree;
    }
    std::vector<Model> r;
    for (sheafnn::Index i = 0; i < task.count; ++i) r.emplace_back(options, static_cast<std::uint64_t>(i));
    return r;
  }
  std::vector<sheafnn::batch::Training<Model>> trainings(const GpuTask& task) {
    std::vector<sheafnn::batch::Training<Model>> r;
    for (std::size_t i = 0; i < models_.size(); ++i) {
      sheafnn::TrainOptions options;
      options.epochs = options.patience = 1'000'000'000;
      options.input_dropout = 0.5;
      options.dropout = 0.3;
      options.samples = 3;
      options.seed = i;
      r.push_back({&models_[i], &task.data.splits[i % task.data.splits.size()], options});
    }
    return r;
  }

  std::vector<Model> models_;
  sheafnn::batch::BatchTrainer<Executor, Model> trainer_;
};

template <class Model>
std::unique_ptr<GpuTrainings> prepare(Executor& executor, const GpuTask& task) {
  return std::make_unique<ModelTrainings<Model>>(executor, task);
}

extern const GpuModel nsd_diagonal, nsd_special_orthogonal, nsd_general_linear;
extern const GpuModel bsnn_diagonal, bsnn_special_orthogonal, bsnn_general_linear;

/// In the order of epoch_models and epoch_maps.
inline const GpuModel* const gpu_models[2][3] = {{&nsd_diagonal, &nsd_special_orthogonal, &nsd_general_linear},
                                                 {&bsnn_diagonal, &bsnn_special_orthogonal, &bsnn_general_linear}};

}  // namespace benchmarks
