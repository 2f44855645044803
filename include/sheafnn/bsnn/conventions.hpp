/// \file
/// What options mean in files of earlier versions (io/format_version.hpp), whose networks had another sign, scale or
/// spread for the same options.
#pragma once

#include "sheafnn/bsnn/cooperative_options.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/posterior/spread_range.hpp"
#include "sheafnn/sheaf/normalisation.hpp"

namespace sheafnn::detail {

/// The first version of files whose options mean what they mean in this library.
inline constexpr Index conventions_version = 3;

/// Sets what options of a file of that version mean. In version 1, cooperative layers without residual were −act(Z).
inline void use_conventions(Index version, CooperativeOptions& options) {
  if (version == 1) options.negate_diffused = !options.residual;
}
/// In version 1, fixed filters were normalised by (deg + 1)^{-1/2} with the normalisation block too. Up to version 2, all
/// posteriors had the published range of spread.
template <class Options>
  requires requires(Options options) { options.augmented_filters; }
void use_conventions(Index version, Options& options) {
  if (version == 1) {
    options.augmented_filters =
        options.normalisation == Normalisation::block && (options.add_lp || options.add_hp);
  }
  if (version <= 2) options.spread = SpreadRange::published;
}

/// Refuses to resume a training of an earlier version with a network that had another sign, scale or spread then.
///
/// \param version  of the file that the state comes from
/// \throws std::invalid_argument  naming the option with which the training can resume
template <class Options>
void check_conventions(Index version, const Options& options) {
  if constexpr (requires(Options before) { use_conventions(version, before); }) {
    Options before = options;
    use_conventions(version, before);
    if (before == options) return;
    const auto refuse = [](const char* why) {
      throw_invalid_argument("resume", "the state of an earlier version", why);
    };
    if constexpr (requires { options.negate_diffused; }) {
      refuse("layers without residual had the opposite sign then: set negate_diffused to resume");
    } else {
      if (before.spread != options.spread) {
        refuse("posteriors had the published range of spread then: set spread to published to resume");
      }
      refuse("fixed filters with the normalisation block had another scale then: set augmented_filters to resume");
    }
  }
}

}  // namespace sheafnn::detail
