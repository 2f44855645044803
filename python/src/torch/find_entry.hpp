/// \file
/// The entry of a registry that a setting names.
#pragma once

#include <sheafnn/bsnn/hypergraph_options.hpp>
#include <sheafnn/bsnn/network_options.hpp>
#include <sheafnn/core/errors.hpp>
#include <span>
#include <string>

#include "pass.hpp"

namespace python {

/// \param what  has the entries, for the message: "this build"
/// \throws std::invalid_argument  there is none
[[nodiscard]] inline const TorchEntry& find_entry(std::span<const TorchEntry* const> entries, const Setting& setting,
                                                  std::string_view what) {
  // Of single layers, and of names that belong to no network: maps per incident pair.
  constexpr const sheafnn::NetworkKind& hypergraphs = sheafnn::HypergraphOptions::kind;
  const sheafnn::NetworkKind& kind = hypergraphs.has(setting.kind) ? hypergraphs : sheafnn::kind_of(setting.kind);
  std::string there;
  for (const TorchEntry* entry : entries) {
    if (entry->wide != setting.wide || !kind.has(entry->bayesian)) continue;
    if (entry->maps == setting.maps && entry->stalk_dimension == setting.stalk_dimension) return *entry;
    there += sheafnn::detail::concat(there.empty() ? "" : ", ", entry->maps, " ", entry->stalk_dimension);
  }
  sheafnn::throw_invalid_argument(
      "maps, stalk_dim", sheafnn::detail::concat(setting.maps, ", ", setting.stalk_dimension),
      sheafnn::detail::concat("of ", kind.deterministic, " ", what, " has ", there.empty() ? "none" : there));
}

}  // namespace python
