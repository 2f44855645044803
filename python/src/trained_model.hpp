/// \file
/// A trained model: the content of its checkpoint, and the functions that know its type.
#pragma once

#include <filesystem>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/io/checkpoint.hpp>
#include <sheafnn/io/npz_writer.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/class_names.hpp"
#include "models/registry.hpp"

namespace python {

using sheafnn::Dataset;
using sheafnn::Index;

using programs::maps_of;

/// A trained model: a checkpoint, and the functions that know its type.
class Model {
 public:
  /// \param path  where the file comes from, for messages
  /// \throws std::runtime_error      it is no checkpoint
  /// \throws std::invalid_argument   a model that this build does not contain
  Model(std::filesystem::path path, sheafnn::io::TensorFile file)
      : path_(std::move(path)),
        file_(std::move(file)),
        info_(sheafnn::io::checkpoint_info(path_, file_)),
        entry_(&programs::find_model(info_.model, maps_of(info_.model, info_.maps), info_.stalk_dimension)) {}

  [[nodiscard]] const sheafnn::io::TensorFile& file() const { return file_; }
  [[nodiscard]] const sheafnn::io::CheckpointInfo& info() const { return info_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] bool bayesian() const { return programs::is_bayesian(info_.model); }
  [[nodiscard]] std::string_view maps() const { return maps_of(info_.model, info_.maps); }
  /// Empty if they are not known.
  [[nodiscard]] std::vector<std::string> feature_names() const {
    return programs::checkpoint_feature_names(path_.string(), file_.metadata);
  }
  /// What happens to features.
  [[nodiscard]] const sheafnn::FeaturePlan& plan() const {
    return programs::with_options_of(info_.model, info_.networks,
                                     [](const auto& options) -> const auto& { return options.feature_plan; });
  }

  /// \throws std::invalid_argument  data with other feature columns
  [[nodiscard]] sheafnn::Prediction predict(const Dataset& data, const sheafnn::PredictOptions& options) const {
    sheafnn::check_feature_names(data.feature_names, feature_names());
    return entry_->predict(path_, file_, bayesian(), data, options);
  }
  [[nodiscard]] sheafnn::io::NpzWriter learned(const Dataset& data, const sheafnn::PredictOptions& options,
                                               Index layer) const {
    sheafnn::check_feature_names(data.feature_names, feature_names());
    return entry_->learned(path_, file_, bayesian(), data, options, layer);
  }

 private:
  std::filesystem::path path_;
  sheafnn::io::TensorFile file_;
  sheafnn::io::CheckpointInfo info_;
  const programs::ModelEntry* entry_;
};

}  // namespace python
