/// \file
/// Everything explore shows of a trained model. Compiled on its own: reading files and drawing share no templates.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "explore/learned.hpp"
#include "explore/subject.hpp"

namespace explore {

/// Epochs of a training.
struct History {
  std::string training;                                ///< its split and seed, in words
  std::vector<double> objective, kl, validation_loss;  ///< one number per epoch; NaN without validation nodes
  Index best_epoch = 0;
};

struct Exploration {
  std::vector<std::pair<std::string, std::string>> facts = {};  ///< names and values
  std::vector<std::pair<std::string, std::string>> use = {};    ///< figures of the training: is the sheaf used?
  std::string warning = {};                                     ///< where it is not
  std::vector<Picture> pictures = {};
  std::vector<std::string> notes = {};  ///< what is not shown, and why
};

/// Draws all pictures.
///
/// \param evaluated       nodes that accuracies are of; those without a label do not count
/// \param evaluated_name  e.g. "test nodes of split 0"
/// \param history         or null
/// \throws std::runtime_error  gnuplot is missing or fails
[[nodiscard]] Exploration explore_model(const sheafnn::Dataset& data, const Learned& learned,
                                        const std::vector<std::int32_t>& evaluated,
                                        const std::string& evaluated_name, const History* history);

}  // namespace explore
