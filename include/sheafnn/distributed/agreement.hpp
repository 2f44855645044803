/// \file
/// What all ranks must have in common, checked before a training begins: version, options, data, parameters.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/train_options.hpp"
#include "sheafnn/distributed/communicator.hpp"
#include "sheafnn/distributed/distributed_data.hpp"
#include "sheafnn/io/option_text.hpp"
#include "sheafnn/version.hpp"

namespace sheafnn::distributed {

/// Names and values, as texts.
using Settings = std::vector<std::pair<std::string, std::string>>;

/// Compares the settings of all ranks with the settings of rank 0. All ranks call it.
///
/// \throws std::runtime_error  on all ranks, naming the first rank that differs, the setting, and both values
inline void require_agreement(Communicator& ranks, const Settings& settings) {
  std::string own, expected;
  for (const auto& [name, value] : settings) own += detail::concat(name, '\n', value, '\n');
  expected = own;
  ranks.broadcast(expected);
  const std::vector<std::int32_t> differs = ranks.all<std::int32_t>(own == expected ? 0 : 1);
  for (std::size_t rank = 0; rank < differs.size(); ++rank) {
    if (differs[rank] == 0) continue;
    std::string message;
    if (ranks.rank() == static_cast<int>(rank)) {
      std::size_t at = 0;
      const auto next = [&] {
        const std::size_t end = std::min(expected.find('\n', at), expected.size());
        std::string line = expected.substr(at, end - at);
        at = end + 1;
        return line;
      };
      message = "another number of settings";
      for (const auto& [name, value] : settings) {
        if (at >= expected.size()) break;
        const std::string other_name = next(), other = next();
        if (other_name == name && other == value) continue;
        message = other_name == name ? detail::concat(name, " is ", value, ", on rank 0 it is ", other)
                                     : detail::concat(name, " stands where rank 0 has ", other_name);
        break;
      }
    }
    ranks.broadcast(message, static_cast<int>(rank));
    throw std::runtime_error(detail::concat("the ranks do not agree: on rank ", rank, " ", message));
  }
}

namespace detail {

/// FNV-1a, of the bytes of what is added.
class Fingerprint {
 public:
  template <class T>
  void add(std::span<const T> values) {
    for (const T& value : values) {
      const auto bytes = std::bit_cast<std::array<unsigned char, sizeof(T)>>(value);
      for (const unsigned char byte : bytes) state_ = (state_ ^ byte) * 0x100000001b3ULL;
    }
  }
  [[nodiscard]] std::string text() const { return std::to_string(state_); }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

/// Options that affect the result: not the number of threads.
template <class Options>
void add_options(const Options& options, Settings& settings) {
  const auto add = [&](const Option& option, const auto& field) {
    if (std::string_view(option.key) != "threads") settings.emplace_back(option.key, io::option_text(field));
  };
  for_each_option(add, options);
}

[[nodiscard]] inline Settings settings_of(TrainOptions options) {
  options.sheaf_learning_rate = options.sheaf_rate();  // set or not, ranks agree in what it is
  Settings r;
  add_options(options, r);
  return r;
}

template <class Model>
[[nodiscard]] Settings settings_of(const Model& model) {
  Settings r = {{"version of sheafnn", SHEAFNN_VERSION_STRING},
                {"model", std::string(Model::kind)},
                {"family", std::string(Model::Family::name)},
                {"stalk dimension", std::to_string(Model::stalk_dimension)},
                {"bytes of a number", std::to_string(sizeof(typename Model::Scalar))}};
  add_options(model.options(), r);
  Fingerprint parameters;
  parameters.add(model.parameters().values().view());
  r.emplace_back("fingerprint of the parameters", parameters.text());
  return r;
}

[[nodiscard]] inline Settings settings_of(const Split& split) {
  Fingerprint nodes;
  for (const auto* set : {&split.train, &split.validation, &split.test})
    nodes.add(std::span<const std::int32_t>(*set));
  return {{"training nodes", std::to_string(split.train.size())},
          {"validation nodes", std::to_string(split.validation.size())},
          {"test nodes", std::to_string(split.test.size())},
          {"fingerprint of the split", nodes.text()}};
}

}  // namespace detail

namespace detail {

/// The edges or hyperedges of a dataset, as settings that ranks compare.
[[nodiscard]] inline Settings settings_of_graph(const Dataset& whole) {
  Fingerprint edges, edge_types, node_types;
  edges.add(whole.graph.targets());
  for (Index arc = 0; arc < whole.graph.arc_count(); ++arc) {
    const std::uint8_t listed = whole.graph.listed(arc) ? 1 : 0;
    edges.add(std::span<const std::uint8_t>(&listed, 1));
  }
  edge_types.add(whole.graph.edge_types());
  node_types.add(whole.graph.node_types());
  return {{"edges", std::to_string(whole.graph.edge_count())},
          {"fingerprint of the edges", edges.text()},
          {"edge types", io::option_text(whole.edge_type_names)},
          {"fingerprint of the edge types", edge_types.text()},
          {"node types", io::option_text(whole.node_type_names)},
          {"fingerprint of the node types", node_types.text()}};
}
[[nodiscard]] inline Settings settings_of_graph(const HypergraphDataset& whole) {
  Fingerprint pairs;
  pairs.add(whole.graph.offsets());
  pairs.add(whole.graph.hyperedges());
  return {{"hyperedges", std::to_string(whole.graph.hyperedge_count())},
          {"incident pairs", std::to_string(whole.graph.pair_count())},
          {"fingerprint of the incident pairs", pairs.text()}};
}

}  // namespace detail

/// What the parts of a dataset must have in common is in the whole dataset: to be compared before it is cut.
///
/// \throws std::runtime_error  as require_agreement(). Takes any dataset
template <class GraphType>
void require_agreement(Communicator& ranks, const NodeDataset<GraphType>& whole) {
  detail::Fingerprint labels, features;
  labels.add(std::span<const std::int32_t>(whole.labels));
  features.add(whole.features.column_of());
  features.add(whole.features.values());
  Settings settings = {{"data set", whole.name},
                       {"nodes", std::to_string(whole.node_count())},
                       {"features", std::to_string(whole.feature_count())},
                       {"classes", std::to_string(whole.class_count)}};
  const Settings more = detail::settings_of_graph(whole);
  settings.insert(settings.end(), more.begin(), more.end());
  settings.emplace_back("fingerprint of the labels", labels.text());
  settings.emplace_back("fingerprint of the features", features.text());
  require_agreement(ranks, settings);
}

}  // namespace sheafnn::distributed
