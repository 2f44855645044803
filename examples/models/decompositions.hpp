/// \file
/// The eigenvectors and singular vectors that connections and spectra of graphs are made of, compiled once (in
/// decompositions.cpp). Together they take as long as a model. They do not depend on the model and are in double.
#pragma once

#include <sheafnn/sheaf/connection.hpp>
#include <sheafnn/sheaf/eigenpairs.hpp>
#include <sheafnn/sheaf/leading_directions.hpp>
#include <sheafnn/sheaf/local_frames.hpp>

/// \param declare_or_define  `extern template` or `template`
#define SHEAFNN_SHARED_DECOMPOSITIONS(declare_or_define)                                                         \
  declare_or_define Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>&                                              \
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>::compute(const Eigen::EigenBase<Eigen::MatrixXd>&, int);        \
  declare_or_define class Eigen::BDCSVD<Eigen::MatrixXd>;                                                        \
  declare_or_define class Eigen::HouseholderQR<Eigen::MatrixXd>;                                                 \
  declare_or_define class Eigen::JacobiSVD<Eigen::MatrixXd>;                                                     \
  declare_or_define Eigen::MatrixXd sheafnn::detail::leading_directions(const Eigen::MatrixXd&, sheafnn::Index); \
  declare_or_define void sheafnn::detail::fix_signs(Eigen::MatrixXd&);                                           \
  declare_or_define void sheafnn::detail::pivot_basis(Eigen::MatrixXd&);                                         \
  declare_or_define void sheafnn::detail::complete_frame(Eigen::MatrixXd&, sheafnn::Index);                      \
  declare_or_define Eigen::MatrixXd sheafnn::detail::nearest_orthogonal(const Eigen::MatrixXd&, bool);           \
  declare_or_define sheafnn::sheaf::Transports sheafnn::sheaf::connection_transports(                            \
      const sheafnn::sheaf::BasicLocalFrames<double>&, bool, sheafnn::Execution, sheafnn::Index,                 \
      sheafnn::GraphPart*);                                                                                      \
  declare_or_define sheafnn::sheaf::Eigenpairs<double> sheafnn::detail::smallest_eigenpairs(                     \
      const sheafnn::detail::EigenpairProblem<double>&, const sheafnn::sheaf::EigenpairOptions&);

#if !defined(__NVCC__)  // nvcc's Eigen is another one
SHEAFNN_SHARED_DECOMPOSITIONS(extern template)
#endif
