/// \file
/// ParameterSet: the named weight matrices of a network in one contiguous array. Networks have their gradients in another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/nn/initial_values.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn::layers {

/// Weight decay and learning rate are chosen per group.
enum class ParameterGroup : std::uint8_t { network, sheaf_learner };

/// One named matrix.
struct ParameterInfo {
  std::string name;
  std::vector<Index> shape;  ///< as users and files see it: out × in, or a vector
  /// In memory the matrix lies in × out (row-major), because the layer reads it by input.
  bool transposed = false;
  ParameterGroup group = ParameterGroup::network;
  Index offset = 0;
  Index size = 0;
  InitialValues initial;
  bool as_stored = false;  ///< are initial values listed in the order of memory, not as files have them?
};

/// Position of a parameter in the arrays; −1 if the architecture lacks the parameter.
using ParameterId = int;

}  // namespace sheafnn::layers

namespace sheafnn::detail {

/// Asks a model's constructor for the names and shapes of its parameters alone, without their values.
struct LayoutOnly {};

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// Which parameters a network has, without their values. Unchecked: indices of parameters, which add() and find()
/// return.
class ParameterTable {
 public:
  /// Adds a parameter.
  ///
  /// \throws std::invalid_argument  no name, or one that exists already; no extent, or one outside 1 … 2147483647
  ParameterId add(std::string name, std::vector<Index> shape, ParameterGroup group, bool transposed = false,
                  InitialValues initial = {}, bool as_stored = false) {
    ParameterInfo info{std::move(name),    std::move(shape), transposed, group, size_, 1,
                       std::move(initial), as_stored};
    require(!info.name.empty(), "name of a parameter", "''", "files need one");
    for (const ParameterInfo& other : info_) {
      require(other.name != info.name, "name of a parameter", info.name,
              "the model has a parameter of that name already");
    }
    require(!info.shape.empty(), "extent of " + info.name, "no extent", "at least one is needed");
    for (const Index extent : info.shape) info.size *= checked_extent("extent of " + info.name, extent);
    size_ += info.size;
    info_.push_back(std::move(info));
    return static_cast<ParameterId>(info_.size()) - 1;
  }

  [[nodiscard]] Index size() const noexcept { return size_; }
  [[nodiscard]] const std::vector<ParameterInfo>& info() const noexcept { return info_; }
  [[nodiscard]] const ParameterInfo& info(ParameterId id) const { return info_[static_cast<std::size_t>(id)]; }
  /// \throws std::invalid_argument  no parameter of that name
  [[nodiscard]] ParameterId find(std::string_view name) const {
    for (std::size_t i = 0; i < info_.size(); ++i) {
      if (info_[i].name == name) return static_cast<ParameterId>(i);
    }
    throw_invalid_argument("parameter", name, "the model has no parameter of that name");
  }

 private:
  std::vector<ParameterInfo> info_;
  Index size_ = 0;
};

/// Values of all parameters of a network; S = float or double.
template <class S>
class ParameterSet : public ParameterTable {
 public:
  /// Allocates the values, all 0; after the last add().
  void finish() { value_.resize(size()); }
  /// The same with their initial values. \param seed  selects them
  void initialise(std::uint64_t seed);

  [[nodiscard]] Buffer<S>& values() noexcept { return value_; }
  [[nodiscard]] const Buffer<S>& values() const noexcept { return value_; }

  /// Its values, as they lie in memory. Unchecked: an id of this set, after finish() or initialise().
  [[nodiscard]] S* data(ParameterId id) noexcept { return value_.data() + info(id).offset; }
  /// Its values, read only. Unchecked: as above.
  [[nodiscard]] const S* data(ParameterId id) const noexcept { return value_.data() + info(id).offset; }

  /// Row-major copy in the user-visible shape (out × in), from `array`: the values or an array laid out like them.
  ///
  /// \throws std::invalid_argument  an array of another size
  [[nodiscard]] std::vector<S> get(ParameterId id, const Buffer<S>& array) const;
  /// The same into `values`. \throws std::invalid_argument  an array of another size, another number of values
  void get(ParameterId id, const Buffer<S>& array, std::span<S> values) const;
  /// Inverse of get(). \throws std::invalid_argument  another number of values; before finish()
  void set(ParameterId id, std::span<const S> values);

 private:
  static void check_count(const ParameterInfo& p, Index count) {
    require(count == p.size, p.name, count, detail::concat("expected ", p.size, " values"));
  }
  template <class Body>
  static void for_each(const ParameterInfo& p, const Body& body) {
    const Index rows = p.shape.front();
    const Index columns = p.size / rows;
    if (!p.transposed) {
      for (Index i = 0; i < p.size; ++i) body(i, i);
      return;
    }
    constexpr Index block = 16;  // rows: what is read of them and what is written lie in a few cache lines
    for (Index first = 0; first < rows; first += block) {
      const Index last = std::min(rows, first + block);
      for (Index j = 0; j < columns; ++j) {
        for (Index i = first; i < last; ++i) body(i * columns + j, j * rows + i);
      }
    }
  }

  Buffer<S> value_;
};

template <class S>
void ParameterSet<S>::initialise(std::uint64_t seed) {
  finish();
  for (ParameterId id = 0; id < static_cast<ParameterId>(info().size()); ++id) {
    const ParameterInfo& p = info(id);
    if (!p.initial) continue;
    std::vector<double> numbers(static_cast<std::size_t>(p.size));
    p.initial({seed, Purpose::weights, 0, static_cast<std::uint32_t>(id % 1024),
               static_cast<std::uint32_t>(id / 1024)},
              numbers);
    for_each(p, [&](Index visible, Index stored) {
      data(id)[stored] = static_cast<S>(numbers[static_cast<std::size_t>(p.as_stored ? stored : visible)]);
    });
  }
}

template <class S>
std::vector<S> ParameterSet<S>::get(ParameterId id, const Buffer<S>& array) const {
  std::vector<S> r(static_cast<std::size_t>(info(id).size));
  get(id, array, r);
  return r;
}

template <class S>
void ParameterSet<S>::get(ParameterId id, const Buffer<S>& array, std::span<S> values) const {
  const ParameterInfo& p = info(id);
  require(array.size() == size(), "array", array.size(), "must have as many numbers as the parameters");
  check_count(p, static_cast<Index>(values.size()));
  for_each(p, [&](Index visible, Index stored) {
    values[static_cast<std::size_t>(visible)] = array[p.offset + stored];
  });
}

template <class S>
void ParameterSet<S>::set(ParameterId id, std::span<const S> values) {
  const ParameterInfo& p = info(id);
  check_count(p, static_cast<Index>(values.size()));
  require(value_.size() == size(), p.name, value_.size(), "finish() allocates the values, after the last add()");
  for_each(p, [&](Index visible, Index stored) {
    value_[p.offset + stored] = values[static_cast<std::size_t>(visible)];
  });
}

/// Zeros the values of all parameters except the parameters in `kept`. Unchecked: the array is laid out like the parameters.
template <class S>
void clear_but(const ParameterSet<S>& parameters, std::initializer_list<ParameterId> kept, Buffer<S>& array) {
  for (std::size_t id = 0; id < parameters.info().size(); ++id) {
    const ParameterInfo& info = parameters.info()[id];
    if (std::find(kept.begin(), kept.end(), static_cast<ParameterId>(id)) == kept.end()) {
      std::fill_n(array.data() + info.offset, info.size, S(0));
    }
  }
}

}  // namespace sheafnn::layers
