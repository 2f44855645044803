/// \file
/// Trains many models of one architecture side by side, and predicts with them. The executor determines where: this header
/// brings the host, cuda.hpp a CUDA device.
///
///     sheafnn::batch::HostExecutor executor;
///     sheafnn::batch::train_batch<sheafnn::batch::HostExecutor, Model>(executor, data, trainings);   // batch::Training
#pragma once

#include "sheafnn/batch/bundle_network.hpp"
#include "sheafnn/batch/connection_layers.hpp"
#include "sheafnn/batch/convolution_network.hpp"
#include "sheafnn/batch/cooperative_network.hpp"
#include "sheafnn/batch/flow_layer.hpp"
#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/batch/hypergraph_layer.hpp"
#include "sheafnn/batch/prediction.hpp"
#include "sheafnn/batch/trainer.hpp"
#include "sheafnn/bsnn.hpp"
