/// \file
/// Layers that diffuse mixed features, Y = (I ⊗ A) dropout(X) Bᵀ and Z = Δ Y, and end with one of the equations of
/// kernels/layer_end.hpp:
///
///     ConvolutionLayer  X' = ELU(Y − Z + b)            math: "Convolutions and waves" (3.43); Hansen and Gebhart 2020
///     WaveLayer         X' = 2X − X_before − ELU(Z)    math: "Convolutions and waves" (3.44); Suk et al. 2022
///
/// X_before is the input of the layer before, of the first layer its own. With identity maps, augmented, D = 1 and
/// without A a convolution is a layer of GCN. For fixed filters the caller of a convolution negates
/// diffusion.filter_sign, since a convolution has I − Δ where other layers have Δ.
#pragma once

#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/layers/laplacian_layer.hpp"

namespace sheafnn::layers {

/// math: "Convolutions and waves" (3.43).
template <RestrictionMapFamily Family, class S>
using ConvolutionLayer = LaplacianLayer<kernels::ConvolutionEnd, Family, S, LayerForm::convolution>;
/// math: "Convolutions and waves" (3.44).
template <RestrictionMapFamily Family, class S>
using WaveLayer = LaplacianLayer<kernels::WaveEnd, Family, S, LayerForm::wave>;

}  // namespace sheafnn::layers
