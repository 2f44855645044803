/// \file
/// sheafnn on NVIDIA GPUs: training and prediction with the models, options, seeds and checkpoints of the CPU. Include
/// it in .cu files and link sheafnn::cuda.
///
///     sheafnn::cuda::train(model, data, data.splits[0], {.epochs = 500});
///     sheafnn::cuda::train_batch<Model>(data, trainings);                   // many at once: cuda::Training
///     sheafnn::cuda::predict(model, data, {.samples = 3});
///
/// Each function creates a batch::DeviceExecutor and calls the function of the same name in sheafnn::batch, which takes
/// any executor. A failed CUDA call throws cuda::CudaError; too little device memory throws cuda::OutOfDeviceMemory.
#pragma once

#include <span>
#include <vector>

#include "sheafnn/batch/bundle_network.hpp"
#include "sheafnn/batch/connection_layers.hpp"
#include "sheafnn/batch/convolution_network.hpp"
#include "sheafnn/batch/cooperative_network.hpp"
#include "sheafnn/batch/device_executor.hpp"
#include "sheafnn/batch/flow_layer.hpp"
#include "sheafnn/batch/hypergraph_layer.hpp"
#include "sheafnn/batch/prediction.hpp"
#include "sheafnn/batch/trainer.hpp"
#include "sheafnn/bsnn.hpp"

namespace sheafnn::cuda {

using batch::CudaError;
using batch::DeviceExecutor;
using batch::Outcome;
using batch::OutOfDeviceMemory;
using batch::Training;

/// sheafnn::train on a GPU, with the same results up to rounding. Epochs run in groups of up to sixteen, and on_epoch
/// is called for each epoch when its group is done. A training that on_epoch stops has therefore run up to fifteen
/// further epochs.
///
/// \param device  index of the CUDA device, from 0
/// \throws std::invalid_argument  an option out of range; data that do not fit the model; no such device
/// \throws std::invalid_argument  an option that only the CPU supports (on_checkpoint, resume, a metric in stop_on)
/// \throws std::runtime_error     a diverged run
/// \throws CudaError              a CUDA or cuBLAS call that failed; OutOfDeviceMemory if memory was short
template <class Model>
TrainResult train(Model& model, const NodeDataset<GraphOf<Model>>& data, const Split& split,
                  const TrainOptions& options = {}, int device = 0) {
  DeviceExecutor executor(device);
  return batch::train(executor, model, data, split, options);
}

/// The same with a given loss: a Classification, with or without class weights. Other losses throw std::invalid_argument.
template <class Model, Loss<typename Model::Scalar> LossType>
TrainResult train(Model& model, const GraphOf<Model>& graph, const NodeFeatures& features, const LossType& loss,
                  const Split& split, const TrainOptions& options = {}, int device = 0) {
  DeviceExecutor executor(device);
  return batch::train(executor, model, graph, features, loss, split, options);
}

/// Trains many models of one architecture side by side on a GPU.
///
/// \throws as train(); a diverged training is reported in its outcome instead
template <class Model>
std::vector<Outcome> train_batch(const NodeDataset<GraphOf<Model>>& data,
                                 std::span<const Training<Model>> trainings, int device = 0) {
  DeviceExecutor executor(device);
  return batch::train_batch<DeviceExecutor, Model>(executor, data, trainings);
}

/// The same with one loss for all models, a Classification.
template <class Model, Loss<typename Model::Scalar> LossType>
std::vector<Outcome> train_batch(const GraphOf<Model>& graph, const NodeFeatures& features, const LossType& loss,
                                 std::span<const Training<Model>> trainings, int device = 0) {
  DeviceExecutor executor(device);
  return batch::train_batch<DeviceExecutor, Model>(executor, graph, features, loss, trainings);
}

/// sheafnn::predict on a GPU.
///
/// \param features  n × p with the p of the model; treated here as its plan says (ModelOptions::feature_plan)
/// \throws std::invalid_argument  an option out of range, or features that do not fit the model
/// \throws CudaError              as train()
template <class Model>
[[nodiscard]] Prediction predict(const Model& model, const GraphOf<Model>& graph, const NodeFeatures& features,
                                 const PredictOptions& options = {}, int device = 0) {
  DeviceExecutor executor(device);
  return batch::predict(executor, model, graph, features, options);
}

/// The same with the graph and features of a dataset.
template <class Model>
[[nodiscard]] Prediction predict(const Model& model, const NodeDataset<GraphOf<Model>>& data,
                                 const PredictOptions& options = {}, int device = 0) {
  return cuda::predict(model, data.graph, data.features, options, device);
}

}  // namespace sheafnn::cuda
