/// \file
/// A trained network as its checkpoint: the base of all classes of trained models.
#pragma once

#include <filesystem>
#include <sheafnn/io/checkpoint.hpp>
#include <sheafnn/io/tensor_file.hpp>
#include <string>
#include <utility>
#include <vector>

#include "models/class_names.hpp"

namespace python {

/// The content of a checkpoint, and the path of its file, for messages.
class Checkpoint {
 public:
  /// \throws std::runtime_error  it is not a checkpoint
  Checkpoint(std::filesystem::path path, sheafnn::io::TensorFile file)
      : path_(std::move(path)), file_(std::move(file)), info_(sheafnn::io::checkpoint_info(path_, file_)) {}

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] const sheafnn::io::TensorFile& file() const { return file_; }
  [[nodiscard]] const sheafnn::io::CheckpointInfo& info() const { return info_; }
  /// Empty where the file has no names.
  [[nodiscard]] std::vector<std::string> feature_names() const {
    return sheafnn::io::saved_names(path_.string(), file_.metadata, "feature_names");
  }
  /// \param data  a dataset, or a set of graphs
  /// \throws std::invalid_argument  data with other feature columns
  template <class Data>
  void check_columns(const Data& data) const {
    sheafnn::io::check_columns(data, path_.string(), file_.metadata);
  }
  /// Empty where the file has no names. \throws std::runtime_error  another number of names
  [[nodiscard]] std::vector<std::string> class_names_of(sheafnn::Index classes) const {
    return sheafnn::io::saved_class_names(path_.string(), file_.metadata, classes);
  }

 private:
  std::filesystem::path path_;
  sheafnn::io::TensorFile file_;
  sheafnn::io::CheckpointInfo info_;
};

}  // namespace python
