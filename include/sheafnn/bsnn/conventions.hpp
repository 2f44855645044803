/// \file
/// What files of version 1 (io/format_version.hpp) leave unsaid of two options: their networks were computed by other signs
/// and scales than networks of the same options are now.
#pragma once

#include "sheafnn/bsnn/cooperative_options.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/sheaf/normalisation.hpp"

namespace sheafnn::detail {

/// Makes options of a file of version 1 those of the network that it was computed with: without a residual, cooperative
/// layers gave −act(Z).
inline void use_first_conventions(CooperativeOptions& options) { options.negate_diffused = !options.residual; }
/// With the normalisation block, fixed filters were normalised by (deg + 1)^{-1/2}.
template <class Options>
  requires requires(Options options) { options.augmented_filters; }
void use_first_conventions(Options& options) {
  options.augmented_filters = options.normalisation == Normalisation::block && (options.add_lp || options.add_hp);
}

/// Refuses to go on with a training of a network that is computed otherwise now.
///
/// \param first  is the state one of a file of version 1?
/// \throws std::invalid_argument  naming the option with which the training goes on
template <class Options>
void check_conventions(bool first, const Options& options) {
  if constexpr (requires(Options before) { use_first_conventions(before); }) {
    Options before = options;
    if (first) use_first_conventions(before);
    if (before == options) return;
    constexpr bool cooperative = requires { options.negate_diffused; };
    throw_invalid_argument(
        "resume", "the state of an earlier version",
        cooperative ? "layers without residual had the opposite sign then; only with negate_diffused can it go on"
                    : "fixed filters had another scale with the normalisation block then; only with "
                      "augmented_filters can it go on");
  }
}

}  // namespace sheafnn::detail
