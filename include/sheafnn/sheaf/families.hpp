/// \file
/// The restriction-map families of the library.
///
/// | family               | Map            | Gram F_aᵀF_a | Transport F_aᵀF_b | coordinates          |
/// | -------------------- | -------------- | ------------ | ----------------- | -------------------- |
/// | Identity<D>          | none, F = I    | 1 × 1        | 1 × 1             | none                 |
/// | Diagonal<D>          | D, diag(z)     | D × 1        | D × 1             | D                    |
/// | SpecialOrthogonal<D> | D × D rotation | 1 × 1        | D × D             | D(D − 1)/2           |
/// | Orthogonal<D>        | D × D, given   | 1 × 1        | D × D             | D(D − 1)/2           |
/// | Conformal<D>         | D × D, c R     | 1 × 1        | D × D             | D(D − 1)/2 and log c |
/// | GeneralLinear<D>     | D × D          | D × D        | D × D             | D²                   |
/// | RectangularLinear<E, D> | E × D, given | D × D        | D × D             | E D                  |
///
/// What a family provides, and how to write one: sheaf/family.hpp.
#pragma once

#include "sheafnn/sheaf/families/conformal.hpp"
#include "sheafnn/sheaf/families/diagonal.hpp"
#include "sheafnn/sheaf/families/general_linear.hpp"
#include "sheafnn/sheaf/families/identity.hpp"
#include "sheafnn/sheaf/families/orthogonal.hpp"
#include "sheafnn/sheaf/families/rectangular_linear.hpp"
#include "sheafnn/sheaf/families/special_orthogonal.hpp"
