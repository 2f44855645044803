/// \file
/// The weights of the terms of Laplacians over hypergraphs (math: "The non-linear Laplacian" (7.4), (7.5)).
///
/// Unchecked: sizes of hyperedges.
#pragma once

#include "sheafnn/core/config.hpp"

namespace sheafnn::kernels {

/// 1/δ_e, the share of a member in the mean over a hyperedge of this size; 1 for an empty hyperedge.
template <class S>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S member_share(Index size) {
  return S(1) / static_cast<S>(size > 1 ? size : 1);
}
/// a_i = 2/δ_e of the published Laplacian.
template <class S>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S published_weight(Index size) {
  return S(2) * member_share<S>(size);
}
/// c_e of the non-linear Laplacian, of a hyperedge of two members or more.
template <class S>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S selected_weight(Index size, bool mediators) {
  return mediators ? S(1) / static_cast<S>(2 * size - 3) : member_share<S>(size);
}

/// The term of an incident pair in the non-linear Laplacian: which of its hyperedge's two vectors m it reads, or −1 for none,
/// and a_i.
template <class S>
struct SelectedTerm {
  int slot;
  S weight;
};
/// \param end  0 and 1: the pair is the first or second of the most discrepant ones; −1: it is another
template <class S>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE SelectedTerm<S> selected_term(Index size, bool mediators, int end) {
  const S c = selected_weight<S>(size, mediators);
  if (end < 0) return mediators ? SelectedTerm<S>{1, S(2) * c} : SelectedTerm<S>{-1, S(0)};
  // Without mediators the first end reads what the second one sends, and the other way round.
  return mediators ? SelectedTerm<S>{0, c * static_cast<S>(size)} : SelectedTerm<S>{end, c};
}
/// Is an end a summand of a slot that does not sum up all members?
[[nodiscard]] SHEAFNN_HD constexpr bool sends(int end, int slot, bool mediators) {
  return mediators || end != slot;
}
/// Does a slot sum up all members?
[[nodiscard]] SHEAFNN_HD constexpr bool sums_all(int slot, bool mediators) { return mediators && slot == 0; }

}  // namespace sheafnn::kernels
