/// \file
/// The parts of the networks that do not depend on the family of maps, compiled once for all models (in
/// shared.cpp).
#pragma once

#include <sheafnn/layers/encoder.hpp>
#include <sheafnn/layers/sheaf_learner.hpp>
#include <sheafnn/nn/dense.hpp>
#include <sheafnn/nn/sparse_input.hpp>

#if !defined(PROGRAMS_DEFINE_SHARED)
#define PROGRAMS_SHARED extern template
#else
#define PROGRAMS_SHARED template
#endif
PROGRAMS_SHARED class sheafnn::SheafLearner<float>;
PROGRAMS_SHARED class sheafnn::Encoder<float>;
PROGRAMS_SHARED class sheafnn::SparseInput<float>;
PROGRAMS_SHARED void sheafnn::multiply_dense<float>(Execution, Index, Index, Index, const StridedMatrix<float>&,
                                                    const float*, Index, float*, Index, bool);
PROGRAMS_SHARED void sheafnn::add_column_sums<float>(Index, Index, const float*, Index, float*);
#undef PROGRAMS_SHARED
