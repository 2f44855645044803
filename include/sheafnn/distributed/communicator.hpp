/// \file
/// Communicator: the ranks of a computation on MPI, sums over them in the order of the ranks, and a count of what is
/// sent.
///
/// MPI leaves open in which order MPI_Allreduce adds up. Here every rank gets one segment of the values from all ranks
/// (MPI_Alltoall). It adds them up in the order of the ranks, and sends the sums to all ranks (MPI_Allgather). As many
/// values are sent as with the best algorithms for MPI_Allreduce, 2 (P − 1)/P of each value. The sum has the same bits on
/// all ranks, from run to run and with any implementation of MPI.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/distributed/mpi.hpp"

namespace sheafnn::distributed {

static_assert(MPI_VERSION >= 3, "sheafnn/distributed.hpp needs MPI 3");

/// What one rank has sent since it began to count. Takes any numbers.
struct Traffic {
  std::int64_t messages = 0;  ///< with rows of node features
  std::int64_t bytes = 0;     ///< in them
  std::int64_t sums = 0;      ///< sums and maxima over all ranks
  std::int64_t summed = 0;    ///< values in them

  friend bool operator==(const Traffic&, const Traffic&) = default;
  [[nodiscard]] friend Traffic operator-(const Traffic& a, const Traffic& b) noexcept {
    return {a.messages - b.messages, a.bytes - b.bytes, a.sums - b.sums, a.summed - b.summed};
  }
};

namespace detail {

using sheafnn::detail::concat;

template <class T>
[[nodiscard]] MPI_Datatype mpi_type() {
  if constexpr (std::is_same_v<T, float>) {
    return MPI_FLOAT;
  } else if constexpr (std::is_same_v<T, double>) {
    return MPI_DOUBLE;
  } else if constexpr (std::is_same_v<T, std::int32_t>) {
    return MPI_INT32_T;
  } else {
    static_assert(std::is_same_v<T, std::int64_t> || std::is_same_v<T, Index>);
    return MPI_INT64_T;
  }
}

/// MPI counts with int. \throws std::length_error  more than it can
[[nodiscard]] inline int mpi_count(Index count) {
  if (count <= std::numeric_limits<int>::max()) return static_cast<int>(count);
  throw std::length_error(
      concat("a message of ", count, " numbers is longer than MPI allows, 2147483647; use more ranks"));
}

}  // namespace detail

/// A group of ranks with messages of its own. All ranks of the group make it, and call its functions, in the same order.
/// Errors of MPI end the program, as MPI does by default.
class Communicator {
 public:
  /// A copy of `ranks`. Unchecked: that MPI is initialised (run()) and `ranks` a group of it.
  explicit Communicator(MPI_Comm ranks = MPI_COMM_WORLD) {
    MPI_Comm_dup(ranks, &comm_);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator() { MPI_Comm_free(&comm_); }

  [[nodiscard]] MPI_Comm get() const noexcept { return comm_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] bool is_root() const noexcept { return rank_ == 0; }
  [[nodiscard]] const Traffic& traffic() const noexcept { return traffic_; }
  [[nodiscard]] Traffic& traffic() noexcept { return traffic_; }

  /// Ranks of this computer.
  [[nodiscard]] int ranks_here() const {
    MPI_Comm here;
    MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &here);
    int count = 1;
    MPI_Comm_size(here, &count);
    MPI_Comm_free(&here);
    return count;
  }

  /// Replaces the values by their sums over all ranks; see the file comment. Takes any numbers, as many on all ranks.
  template <class S>
  void sum(std::span<S> values, std::span<double> more = {}) {
    ++traffic_.sums;
    traffic_.summed += static_cast<std::int64_t>(values.size() + more.size());
    if (size_ == 1) return;
    const std::size_t ranks = static_cast<std::size_t>(size_), count = values.size() + more.size();
    const std::size_t segment = (count + ranks - 1) / ranks;
    send_.assign(segment * ranks, 0.0);
    receive_.resize(segment * ranks);
    for (std::size_t i = 0; i < values.size(); ++i) send_[i] = static_cast<double>(values[i]);
    for (std::size_t i = 0; i < more.size(); ++i) send_[values.size() + i] = more[i];
    const int length = detail::mpi_count(static_cast<Index>(segment));
    MPI_Alltoall(send_.data(), length, MPI_DOUBLE, receive_.data(), length, MPI_DOUBLE, comm_);
    for (std::size_t i = 0; i < segment; ++i) {
      double total = receive_[i];
      for (std::size_t r = 1; r < ranks; ++r) total += receive_[r * segment + i];
      send_[i] = total;
    }
    MPI_Allgather(send_.data(), length, MPI_DOUBLE, receive_.data(), length, MPI_DOUBLE, comm_);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<S>(receive_[i]);
    for (std::size_t i = 0; i < more.size(); ++i) more[i] = receive_[values.size() + i];
  }

  /// The largest of the values of all ranks, on all of them: no rounding, and so no order. Unchecked: no value is NaN.
  [[nodiscard]] double largest(double value) {
    largest(std::span<double>(&value, 1));
    return value;
  }
  /// The same for several values, with the same count on all ranks.
  void largest(std::span<double> values) {
    ++traffic_.sums;
    traffic_.summed += static_cast<std::int64_t>(values.size());
    MPI_Allreduce(MPI_IN_PLACE, values.data(), detail::mpi_count(static_cast<Index>(values.size())), MPI_DOUBLE,
                  MPI_MAX, comm_);
  }

  /// The values of `root` on all ranks. Takes any numbers, as many on all ranks.
  template <class T>
  void broadcast(std::span<T> values, int root = 0) {
    MPI_Bcast(values.data(), detail::mpi_count(static_cast<Index>(values.size())), detail::mpi_type<T>(), root,
              comm_);
  }
  /// The same for a text of any length.
  void broadcast(std::string& text, int root = 0) {
    std::int64_t length = static_cast<std::int64_t>(text.size());
    broadcast(std::span<std::int64_t>(&length, 1), root);
    text.resize(static_cast<std::size_t>(length));
    MPI_Bcast(text.data(), detail::mpi_count(length), MPI_CHAR, root, comm_);
  }
  /// The values of all ranks, in the order of the ranks, on all of them. Takes any value.
  template <class T>
  [[nodiscard]] std::vector<T> all(T own) {
    std::vector<T> r(static_cast<std::size_t>(size_));
    MPI_Allgather(&own, 1, detail::mpi_type<T>(), r.data(), 1, detail::mpi_type<T>(), comm_);
    return r;
  }
  /// All ranks' values one after another on rank 0, nothing elsewhere.
  ///
  /// \throws std::length_error  a rank's values are more than MPI sends in a message, on all ranks
  template <class T>
  [[nodiscard]] std::vector<T> gather(std::span<const T> own) {
    const std::vector<std::int64_t> counts = all(static_cast<std::int64_t>(own.size()));
    Index total = 0;
    for (const std::int64_t count : counts) {
      static_cast<void>(detail::mpi_count(count));
      total += count;
    }
    // Rank by rank: MPI_Gatherv() counts the values of all ranks with int.
    constexpr int tag = 4;
    if (!is_root()) {
      MPI_Send(own.data(), detail::mpi_count(static_cast<Index>(own.size())), detail::mpi_type<T>(), 0, tag,
               comm_);
      return {};
    }
    std::vector<T> r(static_cast<std::size_t>(total));
    Index start = std::copy(own.begin(), own.end(), r.begin()) - r.begin();
    for (int p = 1; p < size_; ++p) {
      const int count = detail::mpi_count(counts[static_cast<std::size_t>(p)]);
      MPI_Recv(r.data() + start, count, detail::mpi_type<T>(), p, tag, comm_, MPI_STATUS_IGNORE);
      start += count;
    }
    return r;
  }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  Traffic traffic_;
  std::vector<double> send_, receive_;
};

}  // namespace sheafnn::distributed
