/// \file
/// Models that train and predict on a CUDA device, chosen at run time. They live in a shared library of their own,
/// compiled by nvcc, of which only find_device_model() is visible: Eigen's objects have another layout there.
#pragma once

#include <charconv>
#include <cstdint>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/bsnn/trainer.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "models/registry.hpp"

namespace programs {

/// Trainings of one architecture on one graph, side by side.
struct DeviceJob {
  struct Run {
    const sheafnn::Split* split;
    std::uint64_t seed;  ///< of weights, dropout and noise
  };
  NodeData data;
  const std::vector<Run>& runs;
  const NetworkOptions& model;
  const sheafnn::TrainOptions& train;
  bool bayesian = true;
  Keep keep;  ///< of every run
  int device = 0;
};
/// The outcome of one training.
struct DeviceOutcome {
  sheafnn::TrainResult result;  ///< epoch_seconds: an epoch of all trainings, divided by their number
  TrainOutcome outcome;
  std::string error;  ///< why it stopped, when it diverged
};

/// As ModelEntry.
struct DeviceModelEntry {
  std::string_view bayesian, deterministic;
  std::string_view maps;
  int stalk_dimension;
  std::vector<DeviceOutcome> (*train)(const DeviceJob& job);
  sheafnn::Prediction (*predict)(const std::filesystem::path& path, const sheafnn::io::TensorFile& checkpoint,
                                 bool bayesian, const NodeData& data, const sheafnn::PredictOptions& options,
                                 int device);
};

/// Whether the program is linked with models for CUDA devices, or with no_device_models.cpp.
[[nodiscard, gnu::visibility("default")]] bool has_device_models();

/// \throws std::invalid_argument  no such model, family or dimension; a program without device models
[[nodiscard, gnu::visibility("default")]] const DeviceModelEntry& find_device_model(std::string_view model,
                                                                                    std::string_view maps,
                                                                                    int stalk_dimension);

/// --device: cpu (−1), cuda (0) or cuda:N (N).
///
/// \throws std::invalid_argument  anything else, or cuda in a program that was built without it
[[nodiscard]] inline int parse_device(const std::string& text) {
  if (text == "cpu") return -1;
  int number = 0;
  const std::string_view digits = text.starts_with("cuda:") ? std::string_view(text).substr(5) : "0";
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool good = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size() && number >= 0;
  sheafnn::require(good && (text == "cuda" || text.starts_with("cuda:")), "--device", text,
                   "choose cpu, cuda or cuda:NUMBER");
  sheafnn::require(has_device_models(), "--device", text,
                   "this program was built without CUDA; the preset cuda builds it");
  return number;
}

}  // namespace programs
