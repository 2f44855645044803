/// \file
/// The diffusion of a layer and the mixing of the next layer in one kernel, for small graphs. X' of all channels of a node
/// is in the lanes of one warp, which exchange it (diffusion_kernels.hpp, feature_kernels.hpp).
#pragma once

#include "sheafnn/batch/diffusion_kernels.hpp"

namespace sheafnn::batch::detail {

/// Forward: R and X' from W, then, from X' after dropout, X Bᵀ, Y = (I ⊗ A) X Bᵀ and W = S Y of the next layer. The
/// number of channels is a multiple of four. item (node, channels), group: instance; a bundle is a node.
template <class Family, class S>
struct DiffuseMixForward : DiffuseForward<Family, S> {
  using typename DiffusionTeam<Family, S>::Place;
  using DiffusionTeam<Family, S>::max_coordinates;
  MixForward<Family, S> next;
  int teams = 1;  ///< tiles of channels; 1 without B, which needs no other channels

  SHEAFNN_HD void part(const Place& place, int lane, S* sums) const {
    DiffuseForward<Family, S>::part(whole(place), lane, sums);
  }
  SHEAFNN_HD void finish(const Place& place, S* sums) const {
    if (place.left_out) return;
    Tile<S> value[max_coordinates];
    this->store(whole(place), sums, value);
    pack(value, sums);
  }
  /// Adds Σ_k X[k] Bᵀ[k, c] over the channels k of a team, at the channels c of this one.
  SHEAFNN_HD void part_of(const Place& place, int team, const S* numbers, S* sums) const {
    if (place.left_out) return;
    Tile<S> value[max_coordinates], product[max_coordinates];
    unpack(numbers, value);
    unpack(sums, product);
    if (next.right != nullptr) {
      const std::uint32_t first = 4 * static_cast<std::uint32_t>(team);
      add_tile_product<true>(next.shape, value, next.right_at(place.at) + first * next.shape.stride(), product);
    } else {
      SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) product[i] += value[i];
    }
    pack(product, sums);
  }
  SHEAFNN_HD void end(const Place& place, const S* sums) const {
    if (place.left_out) return;
    Tile<S> product[max_coordinates];
    unpack(sums, product);
    next.store(whole(place).at, product);
  }

 private:
  /// The place, when compilers are to know that its tile is whole.
  [[nodiscard]] SHEAFNN_HD SHEAFNN_KERNEL_INLINE static Place whole(Place place) {
    place.at.range = {4, true};
    return place;
  }
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE static void pack(const Tile<S> (&values)[max_coordinates], S* numbers) {
    SHEAFNN_UNROLL for (int i = 0; i < max_coordinates; ++i) values[i].store(numbers + 4 * i);
  }
};

}  // namespace sheafnn::batch::detail
