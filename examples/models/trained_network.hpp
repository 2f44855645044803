/// \file
/// What the functions of a compiled network return and read, whatever its outputs belong to: graphs, links, drawn nodes.
#pragma once

#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/io/tensor_file.hpp>
#include <string>

namespace programs {

/// The result of a training.
struct NetworkOutcome {
  sheafnn::TrainResult result;
  sheafnn::Index parameters = 0;  ///< how many numbers the network has learned
  sheafnn::io::TensorFile checkpoint;
};

/// A network to predict with. Refers to its checkpoint.
struct TrainedNetwork {
  std::string path;  ///< of the checkpoint, for messages
  const sheafnn::io::TensorFile& checkpoint;
  bool bayesian = false;
};

}  // namespace programs
