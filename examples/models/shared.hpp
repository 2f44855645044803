/// \file
/// The parts of the networks that do not depend on the family of maps. They are compiled once for all models (in
/// shared.cpp). A program that compiles many models can do the same.
#pragma once

#include <sheafnn/bsnn/losses.hpp>
#include <sheafnn/bsnn/model_layout.hpp>
#include <sheafnn/layers/dense_layer.hpp>
#include <sheafnn/layers/diffusion.hpp>
#include <sheafnn/layers/dropout_layer.hpp>
#include <sheafnn/layers/edge_blocks.hpp>
#include <sheafnn/layers/encoder.hpp>
#include <sheafnn/layers/feature_mixing.hpp>
#include <sheafnn/layers/layer_norm.hpp>
#include <sheafnn/layers/node_embedding.hpp>
#include <sheafnn/layers/output_layer.hpp>
#include <sheafnn/layers/polynomial_activation.hpp>
#include <sheafnn/layers/readout_head.hpp>
#include <sheafnn/layers/sheaf_learner.hpp>
#include <sheafnn/layers/sheaf_learner_input.hpp>
#include <sheafnn/nn/adam.hpp>
#include <sheafnn/nn/dense.hpp>
#include <sheafnn/nn/parameters.hpp>
#include <sheafnn/nn/softmax.hpp>
#include <sheafnn/nn/sparse_input.hpp>

#include "models/decompositions.hpp"

/// \param declare_or_define  `extern template` or `template`
/// \param S                  float or double
#define SHEAFNN_SHARED_BY_MODELS(declare_or_define, S)                                                           \
  declare_or_define class sheafnn::layers::ParameterSet<S>;                                                      \
  declare_or_define struct sheafnn::NetworkWeights<S>;                                                           \
  declare_or_define struct sheafnn::NetworkWeights<const S>;                                                     \
  declare_or_define struct sheafnn::LayerWeights<S>;                                                             \
  declare_or_define struct sheafnn::LayerWeights<const S>;                                                       \
  declare_or_define struct sheafnn::layers::Adam<S>;                                                             \
  declare_or_define class sheafnn::layers::SparseInput<S>;                                                       \
  declare_or_define class sheafnn::layers::Encoder<S>;                                                           \
  declare_or_define class sheafnn::layers::NodeEmbedding<S>;                                                     \
  declare_or_define class sheafnn::layers::EdgeBlocks<S>;                                                        \
  declare_or_define class sheafnn::layers::SheafLearnerInput<S>;                                                 \
  declare_or_define class sheafnn::layers::SheafLearner<S>;                                                      \
  declare_or_define class sheafnn::layers::DropoutLayer<S>;                                                      \
  declare_or_define class sheafnn::layers::FeatureMixing<S>;                                                     \
  declare_or_define class sheafnn::FilterActivation<S>;                                                          \
  declare_or_define struct sheafnn::layers::DiffusionShape<S>;                                                   \
  declare_or_define class sheafnn::layers::OutputLayer<S>;                                                       \
  declare_or_define class sheafnn::layers::ReadoutHead<S>;                                                       \
  declare_or_define class sheafnn::layers::DenseLayer<S>;                                                        \
  declare_or_define class sheafnn::layers::LayerNorm<S>;                                                         \
  declare_or_define void sheafnn::detail::multiply_block<S>(const StridedMatrix<S>&, const MatrixView<const S>&, \
                                                            const MatrixView<S>&, bool);                         \
  declare_or_define void sheafnn::detail::multiply_dense<S>(Execution, const StridedMatrix<S>&,                  \
                                                            const MatrixView<const S>&, const MatrixView<S>&,    \
                                                            bool);                                               \
  declare_or_define void sheafnn::detail::add_column_sums(Index, Index, const S*, Index, S*);                    \
  declare_or_define void sheafnn::layers::log_softmax_rows(Execution, Index, Index, S*, Index);                  \
  declare_or_define void sheafnn::detail::add_probabilities(Execution, const NodeSelection&, Index, const S*,    \
                                                            Index, double*);                                     \
  declare_or_define double sheafnn::Classification::value_and_derivative(Execution, const MatrixView<S>&,        \
                                                                         const NodeSelection&,                   \
                                                                         std::span<const std::int32_t>, double,  \
                                                                         const MatrixView<S>&) const;            \
  declare_or_define void sheafnn::Classification::predict(Execution, const MatrixView<S>&, const NodeSelection&, \
                                                          const MatrixView<double>&) const;

SHEAFNN_SHARED_BY_MODELS(extern template, float)
