/// \file
/// Trainings on drawn neighbours, of the program large_graph and of the Python package.
#pragma once

#include <map>
#include <sheafnn/bsnn/network_options.hpp>
#include <sheafnn/bsnn/sampling_options.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/graph/graph_rows.hpp>
#include <sheafnn/io/file.hpp>
#include <sheafnn/io/option_text.hpp>
#include <string>
#include <vector>

#include "models/class_names.hpp"

namespace programs {

/// Help of the option --fan-outs.
inline const std::string fan_outs_text =
    "number of neighbours that are drawn for a node at distance 0, 1, ... of the targets (0: all)";

/// Options, where nothing else is said.
struct SampledDefaults {
  sheafnn::SamplingOptions sampling;
  sheafnn::NetworkOptions network;
  sheafnn::TrainOptions train;

  SampledDefaults() {
    sheafnn::for_each_kind(network, [](auto& options) {
      if constexpr (requires { options.layers = 2; }) options.layers = 2;
    });
    train.epochs = 10;
    train.batch_size = 512;
    train.input_dropout = 0;
    train.dropout = 0.2;
    train.weight_decay = train.sheaf_decay = 0;
  }
};

/// One training.
struct SampledJob {
  const sheafnn::GraphRows& rows;
  const std::string& name;  ///< of the rows
  const sheafnn::Split& split;
  const sheafnn::NetworkOptions& model;
  const sheafnn::SamplingOptions& sampling;
  const sheafnn::TrainOptions& train;  ///< with the seed, of the initial weights as well
  bool bayesian = true;
};

/// Key of the fan-outs among the notes of a checkpoint.
inline constexpr const char* fan_outs_note = "fan_outs";

/// What its checkpoint stores about it, in addition to the model.
[[nodiscard]] inline std::map<std::string, std::string> checkpoint_notes(const SampledJob& job,
                                                                         sheafnn::Index best_epoch) {
  const sheafnn::Dataset* const data = job.rows.dataset();
  std::map<std::string, std::string> r =
      data != nullptr ? checkpoint_notes(*data, best_epoch) : checkpoint_notes(job.name, best_epoch);
  r[fan_outs_note] = sheafnn::io::option_text(job.sampling.fan_outs);
  return r;
}

/// The fan-outs of the training on samples whose checkpoint has these notes; without, SamplingOptions' own.
///
/// \param file  of the checkpoint
/// \throws std::runtime_error  naming the file: fan-outs that are none
[[nodiscard]] inline std::vector<sheafnn::Index> checkpoint_fan_outs(
    const std::string& file, const std::map<std::string, std::string>& notes) {
  std::vector<sheafnn::Index> r = sheafnn::SamplingOptions().fan_outs;
  const auto found = notes.find(fan_outs_note);
  if (found == notes.end()) return r;
  return sheafnn::io::detail::naming_file(file, [&] {
    sheafnn::io::parse_option(fan_outs_note, found->second, r);
    sheafnn::validate_fan_outs(r);
    return r;
  });
}

}  // namespace programs
