/// \file
/// RowExchange: GraphPart on MPI. One message to each neighbour that has rows of this part per exchange. Rows of the halo
/// are received in place. Rows for the halo of another part are sent in place if they are contiguous. With a single neighbour
/// they are, since its halo then has all owned nodes but the interior nodes. Other rows are copied into a buffer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "sheafnn/distributed/communicator.hpp"
#include "sheafnn/distributed/local_part.hpp"
#include "sheafnn/graph/graph_part.hpp"

namespace sheafnn::distributed {

/// See the file comment. `ranks` must outlive it. Unchecked: as GraphPart.
class RowExchange final : public GraphPart {
 public:
  /// Every rank makes it at the same time: owners send the degrees of the halo's nodes. Unchecked: indices and neighbours
  /// come from local_part() on each rank, of the same graph and partition.
  RowExchange(Communicator& ranks, PartNumbers numbers, std::vector<Neighbour> neighbours)
      : GraphPart(std::move(numbers)), ranks_(&ranks), neighbours_(std::move(neighbours)) {
    requests_.resize(2 * neighbours_.size(), MPI_REQUEST_NULL);
    for (const Neighbour& neighbour : neighbours_) {
      sent_rows_ += neighbour.sent.size();
      packs_ = packs_ || !in_place(neighbour);
    }
    std::vector<Index> degree = of_owners(this->numbers().degree);
    set_degrees(std::move(degree), of_owners(this->numbers().in_degree));
  }

  [[nodiscard]] const std::vector<Neighbour>& neighbours() const noexcept { return neighbours_; }

  void begin_fetch(float* rows, Index width) override { begin(rows, width); }
  void begin_fetch(double* rows, Index width) override { begin(rows, width); }
  void end_fetch() override { wait(); }
  void give_back(float* rows, Index width) override { add_back(rows, width); }
  void give_back(double* rows, Index width) override { add_back(rows, width); }
  void sum(std::span<float> values, std::span<double> more) override { ranks_->sum(values, more); }
  void sum(std::span<double> values, std::span<double> more) override { ranks_->sum(values, more); }
  [[nodiscard]] double largest(double value) override { return ranks_->largest(value); }
  void largest(std::span<double> values) override { ranks_->largest(values); }

 private:
  static constexpr int fetch_tag = 1, give_tag = 2;

  /// Do the rows that a neighbour's halo has of this part lie contiguously?
  [[nodiscard]] static bool in_place(const Neighbour& to) {
    return to.sent.empty() || to.sent.back() - to.sent.front() + 1 == static_cast<std::int32_t>(to.sent.size());
  }

  /// A value per node, of the halo's nodes their owners'.
  [[nodiscard]] std::vector<Index> of_owners(const std::vector<Index>& numbers) {
    std::vector<double> rows(numbers.begin(), numbers.end());
    begin(rows.data(), 1);
    wait();
    return {rows.begin(), rows.end()};
  }

  template <class S>
  [[nodiscard]] S* buffer(Index width) {
    const std::size_t bytes = sent_rows_ * static_cast<std::size_t>(width) * sizeof(S);
    if (buffer_.size() < bytes) buffer_.resize(bytes);
    static_assert(alignof(std::max_align_t) % alignof(S) == 0);  // of what std::vector allocates
    return reinterpret_cast<S*>(buffer_.data());
  }
  /// Sends rows, if there are some; the other side receives as many.
  template <class S>
  void send(const S* rows, Index count, Index width, int rank, int tag, std::size_t request) {
    if (count == 0) return;
    MPI_Isend(rows, detail::mpi_count(count * width), detail::mpi_type<S>(), rank, tag, ranks_->get(),
              &requests_[request]);
    ++ranks_->traffic().messages;
    ranks_->traffic().bytes += static_cast<std::int64_t>(count * width) * static_cast<std::int64_t>(sizeof(S));
  }
  template <class S>
  void receive(S* rows, Index count, Index width, int rank, int tag, std::size_t request) {
    if (count == 0) return;
    MPI_Irecv(rows, detail::mpi_count(count * width), detail::mpi_type<S>(), rank, tag, ranks_->get(),
              &requests_[request]);
  }
  void wait() { MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE); }

  template <class S>
  void begin(S* rows, Index width) {
    S* packed = packs_ ? buffer<S>(width) : nullptr;
    const std::size_t half = neighbours_.size();
    for (std::size_t k = 0; k < half; ++k) {
      const Neighbour& from = neighbours_[k];
      receive(rows + from.halo * width, from.count, width, from.rank, fetch_tag, k);
    }
    for (std::size_t k = 0; k < half; ++k) {
      const Neighbour& to = neighbours_[k];
      if (to.sent.empty()) continue;
      const S* out = packed;
      if (in_place(to)) {
        out = rows + Index{to.sent.front()} * width;
      } else {
        for (const std::int32_t u : to.sent) packed = std::copy_n(rows + Index{u} * width, width, packed);
      }
      send(out, static_cast<Index>(to.sent.size()), width, to.rank, fetch_tag, half + k);
    }
  }
  template <class S>
  void add_back(S* rows, Index width) {
    S* packed = buffer<S>(width);
    const std::size_t half = neighbours_.size();
    S* in = packed;
    for (std::size_t k = 0; k < half; ++k) {
      const Index count = static_cast<Index>(neighbours_[k].sent.size());
      receive(in, count, width, neighbours_[k].rank, give_tag, k);
      in += count * width;
    }
    for (std::size_t k = 0; k < half; ++k) {
      const Neighbour& to = neighbours_[k];
      send(rows + to.halo * width, to.count, width, to.rank, give_tag, half + k);
    }
    wait();
    for (const Neighbour& from : neighbours_) {
      for (const std::int32_t u : from.sent) {
        S* own = rows + Index{u} * width;
        for (Index c = 0; c < width; ++c) own[c] += packed[c];
        packed += width;
      }
      std::fill_n(rows + from.halo * width, from.count * width, S(0));
    }
  }

  Communicator* ranks_;
  std::vector<Neighbour> neighbours_;  ///< increasing ranks: the order of the sums
  std::size_t sent_rows_ = 0;
  bool packs_ = false;  ///< are some rows not contiguous?
  std::vector<MPI_Request> requests_;
  std::vector<std::byte> buffer_;
};

}  // namespace sheafnn::distributed
