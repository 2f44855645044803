/// \file
/// The kernels in which an epoch spends its time, each by itself, for count.py: it compiles this file and counts
/// what the compiler made of them. No part of the benchmark program.
#include <sheafnn/batch/device_executor.hpp>
#if __has_include(<sheafnn/batch/block_gradient_kernels.hpp>)
#include <sheafnn/batch/block_gradient_kernels.hpp>
#endif
#include <sheafnn/batch/diffusion_kernels.hpp>
#if __has_include(<sheafnn/batch/diffusion_mixing_kernel.hpp>)
#include <sheafnn/batch/diffusion_mixing_kernel.hpp>
#endif
#if __has_include(<sheafnn/batch/flow_kernels.hpp>)
#include <sheafnn/batch/flow_kernels.hpp>
#endif
#include <sheafnn/batch/gradient_sums.hpp>
#include <sheafnn/batch/initial_residual_kernels.hpp>
#include <sheafnn/batch/layer_norm.hpp>
#include <sheafnn/batch/learner_kernels.hpp>
#include <sheafnn/batch/optimiser.hpp>
#include <sheafnn/batch/output_kernels.hpp>
#include <sheafnn/batch/polynomial_kernels.hpp>
#include <sheafnn/batch/sheaf.hpp>
#include <sheafnn/posterior/default_posterior.hpp>

namespace sheafnn::batch::detail {

using Rotations = SpecialOrthogonal<3>;
using General = GeneralLinear<3>;
using DiagonalMaps = Diagonal<3>;
template <class Family>
using Posterior = DefaultPosterior<Family>;

#define SHEAFNN_ITEMS(...) template __global__ void run_parts<Items<__VA_ARGS__>>(Items<__VA_ARGS__>)
#define SHEAFNN_TEAMS(...) template __global__ void run_parts<Teams<__VA_ARGS__>>(Teams<__VA_ARGS__>)

// Along the arcs, and over the channels of a node or an edge.
SHEAFNN_TEAMS(DiffuseForward<Rotations, float>);
SHEAFNN_TEAMS(DiffuseBackward<Rotations, float>);
SHEAFNN_TEAMS(DiffuseForward<General, float>);
SHEAFNN_TEAMS(DiffuseForward<DiagonalMaps, float>);
#if __has_include(<sheafnn/batch/diffusion_mixing_kernel.hpp>)
SHEAFNN_TEAMS(DiffuseMixForward<Rotations, float>);
SHEAFNN_TEAMS(DiffuseMixForward<General, float>);
SHEAFNN_TEAMS(DiffuseMixForward<DiagonalMaps, float>);
#endif
#if __has_include(<sheafnn/batch/flow_kernels.hpp>)
SHEAFNN_TEAMS(DiffuseForward<Rotations, float, StageOutput<float>>);
SHEAFNN_ITEMS(StageBackward<Rotations, float>);
SHEAFNN_ITEMS(StageMixBackward<Rotations, float>);
#endif
SHEAFNN_TEAMS(FilterForward<Rotations, float>);
SHEAFNN_TEAMS(FilterBackward<Rotations, float>);
SHEAFNN_ITEMS(FilterActivationBackward<Rotations, float>);
SHEAFNN_TEAMS(InitialDiffuseForward<Rotations, float>);
#if __has_include(<sheafnn/batch/map_posterior.hpp>)
SHEAFNN_ITEMS(MixForward<Rotations, float, InitialEnding<Rotations, float>>);
#else
SHEAFNN_ITEMS(InitialMixForward<Rotations, float>);
#endif
SHEAFNN_ITEMS(InitialMixBackward<Rotations, float>);
SHEAFNN_TEAMS(InitialDiffuseBackward<Rotations, float>);
#if __has_include(<sheafnn/batch/laplacian_kernels.hpp>)
/// The equation of examples/own_layer.cpp.
template <class T>
struct Reaction {
  static constexpr EquationWeight weights[] = {{.name = "gamma", .initial = 0.5, .tanh = true},
                                               {.name = "rho", .initial = 0, .tanh = true}};
  T gamma, rho;

  template <class S>
  SHEAFNN_HD explicit Reaction(const S* rates) : gamma(rates[0]), rho(rates[1]) {}
  SHEAFNN_HD T forward(const LayerValues<T>& at) const {
    return at.x - gamma * at.z + rho * (at.x - at.x * at.x * at.x);
  }
  SHEAFNN_HD LayerValues<T> backward(const LayerValues<T>& at, const T& bar, T* rates_bar) const {
    rates_bar[0] = -bar * at.z;
    rates_bar[1] = bar * (at.x - at.x * at.x * at.x);
    return {.x = bar * (T(1) + rho * (T(1) - T(3) * at.x * at.x)), .z = -gamma * bar};
  }
};
using Reactions = RunEquation<Reaction, float>;
SHEAFNN_TEAMS(EquationForward<Reactions, LayerOutput<float>, Rotations, float>);
SHEAFNN_ITEMS(EquationBackward<Reactions, Rotations, float>);
SHEAFNN_ITEMS(EquationSums<Reactions, float>);
SHEAFNN_TEAMS(EquationDiffuseBackward<NoLayerBelow, Rotations, float>);
#endif
/// Teams of kernels that sum over lanes, else items: SegmentNeighbours had items in earlier commits.
template <class Kernel>
struct PartOf {
  using Part = Items<Kernel>;
};
template <class Kernel>
  requires requires { typename Kernel::Scalar; }
struct PartOf<Kernel> {
  using Part = Teams<Kernel>;
};
using Segments = PartOf<SegmentNeighbours<Rotations, float>>::Part;
template __global__ void run_parts<Segments>(Segments);
SHEAFNN_TEAMS(EdgeGradient<Rotations, float>);
SHEAFNN_TEAMS(NodeGradient<Rotations, float>);
SHEAFNN_TEAMS(GatherProjections<float>);
// Of a node.
SHEAFNN_ITEMS(MixForward<Rotations, float>);
SHEAFNN_ITEMS(ActivationBackward<Rotations, float>);
#if __has_include(<sheafnn/batch/block_gradient_kernels.hpp>)
SHEAFNN_ITEMS(MixBackward<Rotations, float>);
#else
SHEAFNN_ITEMS(MixBackward<3, float>);
#endif
SHEAFNN_ITEMS(EnterLayers<Rotations, float>);
SHEAFNN_ITEMS(NormForward<float>);
SHEAFNN_TEAMS(NormMeans<float>);
SHEAFNN_ITEMS(NormBackward<float>);
SHEAFNN_ITEMS(NormProducts<float>);
SHEAFNN_TEAMS(FewClassesOutput<float>);
SHEAFNN_TEAMS(FewClassesEvaluation<float>);
// Of an edge.
SHEAFNN_ITEMS(BuildEdges<Rotations, float, SampledMaps<Posterior<Rotations>, float>>);
SHEAFNN_ITEMS(BuildEdges<General, float, SampledMaps<Posterior<General>, float>>);
SHEAFNN_TEAMS(BackwardSampledEdges<Posterior<Rotations>, float>);
SHEAFNN_TEAMS(BackwardSampledEdges<Posterior<General>, float>);
SHEAFNN_TEAMS(BackwardSampledEdges<Posterior<SpecialOrthogonal<5>>, float>);
SHEAFNN_TEAMS(BackwardSampledEdges<Posterior<GeneralLinear<5>>, float>);
// Sums, products, optimiser.
SHEAFNN_ITEMS(RowProducts<float>);
SHEAFNN_ITEMS(CoordinateProducts<float>);
SHEAFNN_TEAMS(SumGradients<float>);
SHEAFNN_TEAMS(SmallProduct<float>);
SHEAFNN_ITEMS(ApplyDropout<float>);
SHEAFNN_ITEMS(AdamStep<float>);

}  // namespace sheafnn::batch::detail
