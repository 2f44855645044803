#!/usr/bin/env bash
# usage: group.sh HEADER   Doxygen's input filter: prints the header, with everything in it put into the group of its task
# (namespaces.dox). The first pattern that fits holds.
set -euo pipefail
case "${1##*include/sheafnn/}" in
  graph/* | graph.hpp) group=graphs ;;
  sheaf/* | sheaf.hpp | planted.hpp) group=sheaves ;;
  rotation/* | rotation.hpp) group=rotations ;;
  uncertainty/* | uncertainty.hpp | bsnn/sheaf_use*) group=uncertainty ;;
  io/* | io.hpp | bsnn/training_state.hpp) group=files ;;
  batch/* | batch.hpp | cuda.hpp) group=batches ;;
  distributed/* | distributed.hpp) group=ranks ;;
  bsnn/*train* | bsnn/epoch_* | bsnn/stop_* | bsnn/search* | bsnn/*prediction.hpp | bsnn/*loss*.hpp | bsnn/target_* | \
    bsnn/learned_* | bsnn/elbo.hpp | bsnn/sampling_options.hpp | search.hpp) group=training ;;
  bsnn/*_steps.hpp | bsnn/*_parts.hpp | bsnn/*_layout.hpp | bsnn/*pass* | bsnn/*_network.hpp | bsnn/network_of_steps.hpp | \
    bsnn/layer_* | bsnn/*_settings.hpp | bsnn/given_posterior.hpp | bsnn/pair_head.hpp | bsnn/edgeless.hpp) group=layers ;;
  bsnn/* | bsnn.hpp | bundle.hpp | convolution.hpp | cooperative.hpp | flow.hpp | hypergraph.hpp | links.hpp | \
    version.hpp) group=models ;;
  posterior/*) group=posteriors ;;
  layers/* | layers.hpp | every_layer.hpp) group=layers ;;
  core/* | nn/* | random/* | kernels/*) group=numbers ;;
  *) group=none ;; # which has no page: the site is not built
esac
# Members of a namespace belong to a group that begins within the namespace. Lines keep their numbers.
sed -e "s|^namespace sheafnn[a-z:_]* {\$|& /** \\\\addtogroup $group */ /** @{ */|" \
  -e 's|^}  // namespace sheafnn|/** @} */ &|' "$1"
