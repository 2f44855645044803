/// \file
/// ChannelTiles: features cut into tiles of a few channels, each tile an array of its own,
///
///     tile t, n × d' × w:  x_{u, i, t w + c},   c = 0 … w − 1.
///
/// An operator that acts only on nodes and stalk coordinates, like Δ, never mixes channels. If each thread has its own
/// tiles, it can apply the operator any number of times without reading what another thread wrote. The last tile is
/// filled up with zeros.
#pragma once

#include <algorithm>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/graph/graph_part.hpp"
#include "sheafnn/layers/node_chunks.hpp"

namespace sheafnn::detail {

/// Where features of one shape lie in tiles. Unchecked: indices of nodes and tiles, and the sizes of arrays.
template <class S>
struct ChannelTiles {
  static constexpr int width = row_lanes<S> / 2;  ///< w: 8 floats, so that 16 channels are work for two threads
  using Tile = Pack<S, width>;

  Index nodes = 0, coordinates = 0, channels = 0;  ///< n, d', f

  [[nodiscard]] Index count() const noexcept { return (channels + width - 1) / width; }
  /// Values of one node in a tile, of a tile, of all tiles.
  [[nodiscard]] Index row() const noexcept { return coordinates * width; }
  [[nodiscard]] Index tile_size() const noexcept { return nodes * row(); }
  [[nodiscard]] Index size() const noexcept { return count() * tile_size(); }

  /// Groups of consecutive tiles. Sums over channels are taken tile after tile within a group, and then over the
  /// groups, whatever the number of threads is.
  [[nodiscard]] Index groups() const noexcept { return std::min<Index>(count(), 4); }
  [[nodiscard]] Index first_tile(Index group) const noexcept { return count() * group / groups(); }

  /// Rows of n × d' × f to tiles, for `nodes_here` nodes from `first` on; prefetches where as many more will go.
  void put(Index first, Index nodes_here, const S* rows, S* tiles) const {
    const Index begin = (first + nodes_here) * row(), end = std::min(begin + nodes_here * row(), tile_size());
    for (Index tile = 0; tile < count(); ++tile) {
      for (Index i = begin; i < end; i += row_lanes<S>) SHEAFNN_PREFETCH_TO_WRITE(tiles + tile * tile_size() + i);
    }
    move(first, nodes_here, [&](Index row, Index at, auto of) { of.copy(rows + row, tiles + at); });
  }
  /// And back.
  void take(Index first, Index nodes_here, const S* tiles, S* rows) const {
    move(first, nodes_here, [&](Index row, Index at, auto of) { of.copy(tiles + at, rows + row); });
  }

  /// Calls step(group, tile, i, first chunk, past the last one) for all tiles, steps i = 0 … steps − 1 and chunks of
  /// nodes. A step of a tile begins when the one before it has ended at all nodes of the tile. A group is one thread's
  /// where there are as many, and otherwise shared by several, which then wait for each other after every step.
  template <class Step>
  void for_steps(Execution execution, const NodeChunks& chunks, Index steps, const Step& step) const {
    const Index alone = groups() / execution.threads() * execution.threads(), shared = groups() - alone;
    parallel_for(execution, alone, 1, [&](Index begin, Index end) {
      for (Index group = begin; group < end; ++group) {
        for (Index tile = first_tile(group); tile < first_tile(group + 1); ++tile) {
          for (Index i = 0; i < steps; ++i) step(group, tile, i, Index{0}, chunks.count);
        }
      }
    });
    if (shared == 0) return;
    for (Index turn = 0; turn < count() / groups() + 1; ++turn) {
      for (Index i = 0; i < steps; ++i) {
        parallel_for(execution, shared * chunks.count, 1, [&](Index begin, Index end) {
          for (Index at = begin; at < end;) {
            const Index group = at / chunks.count, first = at - group * chunks.count;
            const Index last = std::min(chunks.count, first + end - at), tile = first_tile(alone + group) + turn;
            if (tile < first_tile(alone + group + 1)) step(alone + group, tile, i, first, last);
            at += last - first;
          }
        });
      }
    }
  }

  /// The same on a part of a graph, whose chunks are of owned nodes (null: a whole, which has no halo). Before step i of a
  /// tile the rows of the halo in it are fetched; nodes without any are computed meanwhile.
  ///
  /// \param read  read(i): the array of all tiles that step i reads at neighbours
  template <class Read, class Step>
  void for_steps(Execution execution, const NodeChunks& chunks, GraphPart* part, Index steps, const Read& read,
                 const Step& step) const {
    if (part == nullptr) {
      for_steps(execution, chunks, steps, step);
      return;
    }
    Index inner = 0;
    while (inner < chunks.count && chunks.end(inner) <= part->numbers().interior) ++inner;
    for (Index group = 0; group < groups(); ++group) {
      for (Index tile = first_tile(group); tile < first_tile(group + 1); ++tile) {
        for (Index i = 0; i < steps; ++i) {
          part->begin_fetch(read(i) + tile * tile_size(), row());
          parallel_for(execution, inner, 1, [&](Index begin, Index end) { step(group, tile, i, begin, end); });
          part->end_fetch();
          parallel_for(execution, chunks.count - inner, 1,
                       [&](Index begin, Index end) { step(group, tile, i, inner + begin, inner + end); });
        }
      }
    }
  }

 private:
  struct Whole {
    void copy(const S* from, S* to) const { store(to, load<Tile>(from)); }
  };
  struct Part {
    Index size;
    void copy(const S* from, S* to) const { std::copy_n(from, size, to); }
  };
  template <class Copy>
  void move(Index first, Index nodes_here, const Copy& copy) const {
    for (Index tile = 0, channel = 0; channel < channels; ++tile, channel += width) {
      const Index begin = tile * tile_size() + first * row();
      for (Index k = 0; k < nodes_here * coordinates; ++k) {
        if (channel + width <= channels) {
          copy(k * channels + channel, begin + k * width, Whole{});
        } else {
          copy(k * channels + channel, begin + k * width, Part{channels - channel});
        }
      }
    }
  }
};

}  // namespace sheafnn::detail
