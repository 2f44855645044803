/// \file
/// Networks in files of version 1 (io/format_version.hpp), two kinds of which had another sign or scale than networks of the
/// same options have now.
#pragma once

#include "sheafnn/bsnn/cooperative_options.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/sheaf/normalisation.hpp"

namespace sheafnn::detail {

/// Sets what options of a file of version 1 mean. Cooperative layers without residual were −act(Z).
inline void use_first_conventions(CooperativeOptions& options) { options.negate_diffused = !options.residual; }
/// Fixed filters were normalised by (deg + 1)^{-1/2} with the normalisation block too.
template <class Options>
  requires requires(Options options) { options.augmented_filters; }
void use_first_conventions(Options& options) {
  options.augmented_filters = options.normalisation == Normalisation::block && (options.add_lp || options.add_hp);
}

/// Refuses to resume a training of version 1 with a network that had another sign or scale then.
///
/// \param first  is the state one of a file of version 1?
/// \throws std::invalid_argument  naming the option with which the training can resume
template <class Options>
void check_conventions(bool first, const Options& options) {
  if constexpr (requires(Options before) { use_first_conventions(before); }) {
    Options before = options;
    if (first) use_first_conventions(before);
    if (before == options) return;
    constexpr bool cooperative = requires { options.negate_diffused; };
    throw_invalid_argument(
        "resume", "the state of an earlier version",
        cooperative ? "layers without residual had the opposite sign then: set negate_diffused to resume"
                    : "fixed filters with the normalisation block had another scale then: set "
                      "augmented_filters to resume");
  }
}

}  // namespace sheafnn::detail
