/// \file
/// sheafnn on NVIDIA GPUs: training and prediction with the models, options, seeds and checkpoints of the CPU. For
/// .cu files; link sheafnn::cuda.
///
///     sheafnn::cuda::train(model, data, data.splits[0], {.epochs = 500});
///     sheafnn::cuda::train_batch<Model>(data, trainings);                   // many at once: cuda::Training
///     sheafnn::cuda::predict(model, data, {.samples = 3});
///
/// These functions create a batch::DeviceExecutor each and call the functions of the same names in sheafnn::batch,
/// which take any executor. Failed CUDA calls throw cuda::CudaError, too little memory cuda::OutOfDeviceMemory.
#pragma once

#include <span>
#include <vector>

#include "sheafnn/batch/cooperative_network.hpp"
#include "sheafnn/batch/device_executor.hpp"
#include "sheafnn/batch/flow_layer.hpp"
#include "sheafnn/batch/prediction.hpp"
#include "sheafnn/batch/trainer.hpp"
#include "sheafnn/bsnn.hpp"

namespace sheafnn::cuda {

using batch::CudaError;
using batch::DeviceExecutor;
using batch::Outcome;
using batch::OutOfDeviceMemory;
using batch::Training;

/// sheafnn::train on a GPU: the same numbers up to rounding. on_epoch is called for up to sixteen epochs one after
/// another, when they are done: a training that it stops has up to fifteen epochs more.
///
/// \param device  number of the CUDA device, from 0
/// \throws std::invalid_argument  an option out of range, on_checkpoint, resume, or a metric in stop_on, which are for the
///                                CPU; data that do not fit the model; or no device of that number
/// \throws std::runtime_error     a diverged run
/// \throws CudaError              a CUDA or cuBLAS call that failed; OutOfDeviceMemory if memory was short
template <class Model>
TrainResult train(Model& model, const Dataset& data, const Split& split, const TrainOptions& options = {},
                  int device = 0) {
  DeviceExecutor executor(device);
  return batch::train(executor, model, data, split, options);
}

/// The same with a loss: a Classification, with or without class weights. Other losses throw std::invalid_argument.
template <class Model, Loss<typename Model::Scalar> LossType>
TrainResult train(Model& model, const Graph& graph, const NodeFeatures& features, const LossType& loss,
                  const Split& split, const TrainOptions& options = {}, int device = 0) {
  DeviceExecutor executor(device);
  return batch::train(executor, model, graph, features, loss, split, options);
}

/// Many trainings of one architecture side by side on a GPU.
///
/// \throws as train(); a diverged training is reported in its outcome instead
template <class Model>
std::vector<Outcome> train_batch(const Dataset& data, std::span<const Training<Model>> trainings, int device = 0) {
  DeviceExecutor executor(device);
  return batch::train_batch<DeviceExecutor, Model>(executor, data, trainings);
}

/// The same with a loss for all of them: a Classification.
template <class Model, Loss<typename Model::Scalar> LossType>
std::vector<Outcome> train_batch(const Graph& graph, const NodeFeatures& features, const LossType& loss,
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
[[nodiscard]] Prediction predict(const Model& model, const Graph& graph, const NodeFeatures& features,
                                 const PredictOptions& options = {}, int device = 0) {
  DeviceExecutor executor(device);
  return batch::predict(executor, model, graph, features, options);
}

/// As above, of a dataset.
template <class Model>
[[nodiscard]] Prediction predict(const Model& model, const Dataset& data, const PredictOptions& options = {},
                                 int device = 0) {
  return cuda::predict(model, data.graph, data.features, options, device);
}

}  // namespace sheafnn::cuda
