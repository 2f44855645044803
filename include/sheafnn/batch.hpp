/// \file
/// Many trainings of one architecture side by side, and prediction, on an executor: on the host here, on a CUDA device with
/// cuda.hpp.
///
///     sheafnn::batch::HostExecutor executor;
///     sheafnn::batch::train_batch<sheafnn::batch::HostExecutor, Model>(executor, data, trainings);   // batch::Training
#pragma once

#include "sheafnn/batch/cooperative_network.hpp"
#include "sheafnn/batch/flow_layer.hpp"
#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/batch/prediction.hpp"
#include "sheafnn/batch/trainer.hpp"
#include "sheafnn/bsnn.hpp"
