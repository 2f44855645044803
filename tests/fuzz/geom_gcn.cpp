/// \file
/// Fuzz target: the two text files of a Geom-GCN folder. The first byte chooses how features are read, a zero byte ends the
/// file of edges.
#include "sheafnn/io/geom_gcn.hpp"

#include <algorithm>

#include "dataset_checks.hpp"
#include "memory_file.hpp"

SHEAFNN_FUZZ_TARGET(geom_gcn, 256, 1 << 18) {
  if (input.empty()) return;
  const auto form = static_cast<sheafnn::io::GeomGcnFeatures>(input[0] % 3);
  const fuzz::Input rest = input.subspan(1);
  const std::size_t end = static_cast<std::size_t>(std::find(rest.begin(), rest.end(), 0) - rest.begin());
  fuzz::folder().write("out1_graph_edges.txt", rest.first(end));
  fuzz::folder().write("out1_node_feature_label.txt", rest.subspan(std::min(rest.size(), end + 1)));
  for (const auto use : {sheafnn::DatasetUse::own_splits, sheafnn::DatasetUse::prediction}) {
    fuzz::keeps_contract<std::runtime_error>([&] {
      const sheafnn::Dataset data = sheafnn::io::load_geom_gcn(fuzz::folder().path(), form, use);
      // One that holds no feature at all is refused for training only.
      if (data.feature_count() > 0) fuzz::expect_dataset(data, use == sheafnn::DatasetUse::own_splits);
    });
  }
}
