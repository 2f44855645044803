/// \file
/// Checkpoints of train_owned() (trainer.hpp) as files of io/training_state.hpp, from which a training resumes on any
/// number of ranks. Needs sheafnn::io, so that distributed.hpp does not include it.
///
/// Parameters, moments and history are the same on all ranks: rank 0 writes them. The predictions of the best epoch, N · C
/// numbers, are what grows with the graph. Above a size every rank writes the predictions of its own nodes,
///
///     FILE.eE-F-ofP.p.npy   rows of part p of P: a node's index and its C predictions; E epochs, F a fingerprint
///     FILE                  everything else, `best_predictions` empty, metadata: shards (eE-F-ofP) and shard_count (P)
///
/// When all rows are written, FILE replaces the old file, and then the old rows go. So FILE and what it names are whole at
/// any time. All ranks see the same files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "sheafnn/distributed/agreement.hpp"
#include "sheafnn/distributed/distributed_data.hpp"
#include "sheafnn/distributed/npy_file.hpp"
#include "sheafnn/io/file.hpp"
#include "sheafnn/io/training_state.hpp"

namespace sheafnn::distributed {

/// Predictions of more bytes are written by all ranks.
inline constexpr double shard_predictions_above = 512.0 * (1 << 20);

namespace detail {

[[nodiscard]] inline std::filesystem::path shard_path(std::filesystem::path file, const std::string& tag,
                                                      Index part) {
  file += concat(".", tag, ".", part, ".npy");
  return file;
}
/// Is it one of a checkpoint's shards, of another tag? \param name, file  names without folders
[[nodiscard]] inline bool is_old_shard(std::string_view name, std::string_view file, std::string_view tag) {
  if (!name.starts_with(file) || !name.ends_with(".npy")) return false;
  name.remove_prefix(file.size());
  name.remove_suffix(4);
  const auto take = [&](std::string_view text) {
    const bool there = name.starts_with(text);
    if (there) name.remove_prefix(text.size());
    return there;
  };
  const auto take_digits = [&] {
    const std::size_t end = std::min(name.find_first_not_of("0123456789"), name.size());
    name.remove_prefix(end);
    return end > 0;
  };
  const std::string_view whole = name;
  const bool shard = take(".e") && take_digits() && take("-") && take_digits() && take("-of") && take_digits() &&
                     take(".") && take_digits() && name.empty();
  return shard && !(whole.substr(1).starts_with(tag) && whole.substr(1 + tag.size()).starts_with("."));
}
/// Removes them. What cannot be removed stays: no checkpoint names it.
inline void remove_old_shards(const std::filesystem::path& file, std::string_view tag) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  std::vector<std::filesystem::path> old;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (is_old_shard(entry.path().filename().string(), file.filename().string(), tag)) old.push_back(entry.path());
  }
  std::error_code ignored;
  for (const auto& path : old) std::filesystem::remove(path, ignored);
}
/// Writes the rows of this rank, with io::write_file(). \throws std::runtime_error  as that
inline void write_shard(DistributedNodes& data, const std::filesystem::path& path,
                        std::span<const double> predictions, Index outputs) {
  const PartNumbers& numbers = data.numbers();
  std::vector<double> rows;
  rows.reserve(static_cast<std::size_t>(numbers.own * (outputs + 1)));
  for (Index u = 0; u < numbers.own; ++u) {
    rows.push_back(static_cast<double>(numbers.node[static_cast<std::size_t>(u)]));
    const auto row = predictions.subspan(static_cast<std::size_t>(u * outputs), static_cast<std::size_t>(outputs));
    rows.insert(rows.end(), row.begin(), row.end());
  }
  const Index shape[] = {numbers.own, outputs + 1};
  const io::Bytes header = npy_header<double>(shape);
  const std::span<const unsigned char> parts[] = {header,
                                                  {reinterpret_cast<const unsigned char*>(rows.data()),
                                                   rows.size() * sizeof(double)}};
  io::write_file(path, parts);
}

}  // namespace detail

/// Writes a state of OwnStates::on_checkpoint (trainer.hpp). All ranks call it.
///
/// \param own          the same on all ranks except best_predictions: the predictions of the part's nodes, n × outputs
/// \param metadata     further entries: what the training belongs to
/// \param shard_above  bytes of all predictions above which every rank writes its own
/// \throws std::invalid_argument  another number of predictions, a key of the metadata that the format uses itself
/// \throws std::runtime_error     a file that cannot be written, on the rank that finds it; the old checkpoint is whole
inline void write_checkpoint(DistributedNodes& data, const std::filesystem::path& file, const TrainingState& own,
                             Index outputs, std::map<std::string, std::string> metadata = {},
                             double shard_above = shard_predictions_above) {
  Communicator& ranks = data.ranks();
  require(static_cast<Index>(own.best_predictions.size()) == data.node_count() * outputs, "best_predictions",
          own.best_predictions.size(),
          detail::concat("expected nodes * outputs = ", data.node_count(), " * ", outputs));
  const bool sharded =
      static_cast<double>(data.numbers().total_nodes) * static_cast<double>(outputs) * 8 > shard_above;
  std::string tag;
  if (sharded) {
    detail::Fingerprint fingerprint;
    fingerprint.add(std::span<const double>(own.parameters));
    fingerprint.add(std::span<const double>(own.best_parameters));
    tag = detail::concat("e", own.history.size(), "-", fingerprint.text(), "-of", ranks.size());
    detail::write_shard(data, detail::shard_path(file, tag, ranks.rank()), own.best_predictions, outputs);
    static_cast<void>(ranks.all<std::int32_t>(0));  // all rows are complete
    metadata["shards"] = tag;
    metadata["shard_count"] = std::to_string(ranks.size());
  }
  std::vector<double> whole;
  if (!sharded) whole = data.gather(own.best_predictions, outputs);
  if (ranks.is_root()) {
    TrainingState state = own;
    state.best_predictions = std::move(whole);
    io::write_training_state(file, state, metadata);
    detail::remove_old_shards(file, tag);
  }
  static_cast<void>(ranks.all<std::int32_t>(0));
}

/// Reads a state for OwnStates::resume: of write_checkpoint() on any number of ranks, or of one process. Every rank
/// keeps the predictions of its part's nodes, n × outputs; predictions of the halo's nodes are 0. All ranks call it.
///
/// \throws std::runtime_error     as io::read_training_state(); rows that are missing or of another graph or number of outputs
/// \throws std::invalid_argument  predictions of another number of nodes
[[nodiscard]] inline io::TrainingFile read_checkpoint(DistributedNodes& data, const std::filesystem::path& file,
                                                      Index outputs) {
  io::TrainingFile r = io::read_training_state(file);
  const auto tag = r.metadata.find("shards");
  if (tag == r.metadata.end()) {
    r.state.best_predictions = data.own_rows(r.state.best_predictions, outputs);
    return r;
  }
  const Index parts = io::detail::metadata_number<Index>(file.string(), r.metadata, "shard_count");
  constexpr Index range = 1 << 16;
  const std::size_t row = static_cast<std::size_t>(outputs) + 1;
  r.state.best_predictions.assign(static_cast<std::size_t>(data.node_count() * outputs), 0.0);
  Index found = 0, total = 0;
  for (Index p = 0; p < parts; ++p) {
    NpyFile shard(detail::shard_path(file, tag->second, p));
    if (shard.columns() != outputs + 1) {
      throw std::runtime_error(
          detail::concat(shard.name(), ": ", shard.columns(), " columns; expected 1 + ", outputs, " outputs"));
    }
    total += shard.rows();
    for (Index first = 0; first < shard.rows(); first += range) {
      const std::vector<double> values = shard.read<double>(first, std::min(range, shard.rows() - first));
      for (std::size_t at = 0; at < values.size(); at += row) {
        const std::int32_t u = data.own_number(static_cast<Index>(values[at]));
        if (u < 0) continue;
        ++found;
        std::copy_n(values.begin() + static_cast<Index>(at) + 1, outputs,
                    r.state.best_predictions.begin() + u * outputs);
      }
    }
  }
  if (found != data.numbers().own || total != data.numbers().total_nodes) {
    throw std::runtime_error(detail::concat(file.string(), ": its parts have ", total, " nodes, ", found,
                                            " of the ", data.numbers().own, " of this rank; the graph has ",
                                            data.numbers().total_nodes));
  }
  return r;
}

}  // namespace sheafnn::distributed
