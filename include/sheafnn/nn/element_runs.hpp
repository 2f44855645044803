/// \file
/// ElementRuns: which elements of the whole graph's dropout mask the elements of a part are, so that every rank
/// draws the same bits. A part has the rows of some nodes, in any order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/graph_part.hpp"
#include "sheafnn/nn/dropout.hpp"

namespace sheafnn::layers {

/// Elements first[i] … first[i + 1] − 1 of the part are number[i], number[i] + 1, … of the whole. Elements after the last
/// run do not belong to the whole and are dropped. Unchecked: counts and indices of at least 0, and the size of masks.
class ElementRuns {
 public:
  /// Appends `count` elements whose indices in the whole are number, number + 1, ….
  void add(Index number, Index count) {
    if (count == 0) return;
    if (!number_.empty() && number_.back() + (first_.back() - first_[first_.size() - 2]) == number) {
      first_.back() += count;
      return;
    }
    number_.push_back(number);
    first_.push_back(first_.back() + count);
  }
  /// Elements in all runs.
  [[nodiscard]] Index count() const noexcept { return first_.back(); }

  /// Writes the bits of elements [0, count) of the part into `mask`, as Dropout::fill_mask() does of a whole.
  void fill_mask(Execution execution, const Dropout& dropout, Index count, std::uint8_t* mask) const {
    parallel_for(execution, Dropout::blocks(count), 16, [&](Index begin, Index end) {
      constexpr Index block = Dropout::block;
      std::fill_n(mask + begin * (block / 8), (end - begin) * (block / 8), std::uint8_t{0});
      Index at = begin * block;
      std::size_t run =
          static_cast<std::size_t>(std::upper_bound(first_.begin(), first_.end(), at) - first_.begin());
      for (; run < first_.size() && at < end * block; ++run) {
        const Index stop = std::min(end * block, first_[run]);
        copy_bits(dropout, number_[run - 1] + (at - first_[run - 1]), stop - at, mask, at);
        at = stop;
      }
    });
  }

 private:
  /// Copies the bits of `count` elements of the whole from `from` on to the bits of the part from `to` on, which are 0.
  static void copy_bits(const Dropout& dropout, Index from, Index count, std::uint8_t* mask, Index to) {
    constexpr Index block = Dropout::block;
    std::uint8_t bits[block / 8 + 8] = {};
    while (count > 0) {
      const Index b = from / block, within = from % block, here = std::min(count, block - within);
      dropout.fill_blocks(b, b + 1, bits, b);
      for (Index i = 0; i < here; i += 32) {
        std::uint64_t some = detail::kept_bits(bits, within + i);
        if (here - i < 32) some &= (std::uint64_t{1} << (here - i)) - 1;
        some <<= (to + i) % 8;
        for (Index byte = (to + i) / 8; some != 0; some >>= 8, ++byte) {  // no byte that is another thread's
          mask[byte] = static_cast<std::uint8_t>(mask[byte] | (some & 0xff));
        }
      }
      from += here;
      to += here;
      count -= here;
    }
  }

  std::vector<Index> first_ = {0};
  std::vector<Index> number_;
};

/// The rows of `width` values of a part's own nodes, in an array with a row for every node of the whole graph. Takes any
/// width.
[[nodiscard]] inline std::shared_ptr<const ElementRuns> runs_of_rows(const PartNumbers& part, Index width) {
  const auto r = std::make_shared<ElementRuns>();
  for (Index u = 0; u < part.own;) {
    const Index first = u, number = part.node[static_cast<std::size_t>(u)];
    while (u < part.own && part.node[static_cast<std::size_t>(u)] - number == u - first) ++u;
    r->add(number * width, (u - first) * width);
  }
  return r;
}
/// The stored features of these nodes, in the stored features of the whole. Unchecked: sizes of the arguments.
///
/// \param first_entry  index of the first one of every owned node \param input  a SparseInput of the nodes
template <class Input>
[[nodiscard]] std::shared_ptr<const ElementRuns> runs_of_entries(const PartNumbers& part,
                                                                 const std::vector<Index>& first_entry,
                                                                 const Input& input) {
  const auto r = std::make_shared<ElementRuns>();
  for (Index u = 0; u < part.own; ++u) r->add(first_entry[static_cast<std::size_t>(u)], input.row_size(u));
  return r;
}

}  // namespace sheafnn::layers
