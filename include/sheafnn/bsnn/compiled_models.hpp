/// \file
/// Functions of the usual models that the CMake target `sheafnn::models` has compiled: train(), predict(),
/// learned_sheaf(), draw_sheaf() and posterior_parameters(). A program that links the target does not compile them again.
/// bsnn.hpp includes this header for such programs. Nothing else changes: the headers have all definitions, and other
/// models and functions are compiled where they are used.
///
/// The build writes `sheafnn/model_list.hpp` with `SHEAFNN_COMPILED_MODEL(extern template, Family<d>)` for each family
/// of the option SHEAFNN_MODELS.
#pragma once

#include "sheafnn/bsnn/learned_sheaf.hpp"
#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/core/config.hpp"

namespace sheafnn::detail {

#ifdef SHEAFNN_USE_OPENMP
inline constexpr bool uses_openmp = true;
#else
inline constexpr bool uses_openmp = false;
#endif

/// Defined in the library, for the register width and the threads that it was compiled for.
template <int RegisterBytes, bool OpenMp>
[[nodiscard]] int compiled_models_for_registers_of();

/// A program that is compiled for registers of another width than the library, or for other threads, does not link: its
/// error names this function.
inline const int checks_register_width = compiled_models_for_registers_of<register_bytes, uses_openmp>();

}  // namespace sheafnn::detail

/// \param declare_or_define  `extern template` or `template`
/// \param Model              a SheafModel
#define SHEAFNN_FUNCTIONS_OF_MODEL(declare_or_define, Model)                                                    \
  declare_or_define TrainResult train(Model&, const Dataset&, const Split&, const TrainOptions&);               \
  declare_or_define TrainResult train(Model&, const Graph&, const NodeFeatures&, const Classification&,         \
                                      const Split&, const TrainOptions&);                                       \
  declare_or_define Prediction predict(const Model&, const Graph&, const NodeFeatures&, const PredictOptions&); \
  declare_or_define Prediction predict(const Model&, const Dataset&, const PredictOptions&);                    \
  declare_or_define CellularSheaf<Model::Family> learned_sheaf(const Model&, const Graph&, const NodeFeatures&, \
                                                               const LearnedSheafOptions&);                     \
  declare_or_define CellularSheaf<Model::Family> learned_sheaf(const Model&, const Dataset&,                    \
                                                               const LearnedSheafOptions&);                     \
  declare_or_define CellularSheaf<Model::Family> draw_sheaf(const Model&, const Graph&, const NodeFeatures&,    \
                                                            const DrawSheafOptions&);                           \
  declare_or_define CellularSheaf<Model::Family> draw_sheaf(const Model&, const Dataset&, const DrawSheafOptions&);

/// The functions of Bsnn and Nsd of a family. \param Family  with its dimension
#define SHEAFNN_COMPILED_MODEL(declare_or_define, Family)                                                      \
  namespace sheafnn {                                                                                          \
  SHEAFNN_FUNCTIONS_OF_MODEL(declare_or_define, Bsnn<Family>)                                                  \
  SHEAFNN_FUNCTIONS_OF_MODEL(declare_or_define, Nsd<Family>)                                                   \
  declare_or_define PosteriorParameters posterior_parameters(const Bsnn<Family>&, const Graph&,                \
                                                             const NodeFeatures&, const LearnedSheafOptions&); \
  declare_or_define PosteriorParameters posterior_parameters(const Bsnn<Family>&, const Dataset&,              \
                                                             const LearnedSheafOptions&);                      \
  }
