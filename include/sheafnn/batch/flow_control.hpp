/// \file
/// FlowControl: the Dormand–Prince steps with error control of all instances of a batch (for one network
/// layers/flow_layer.hpp). Every instance has a time and a step size of its own. All instances try a step together, until all
/// are at T. An instance at T, or whose step is rejected, takes a step of length 0, which changes nothing.
///
/// The host reads the largest errors once a step, so such a pass cannot be recorded: a recording has no results to read.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/flow_kernels.hpp"
#include "sheafnn/layers/flow_options.hpp"

namespace sheafnn::batch::detail {

/// See the file comment.
template <class Executor, class S>
class FlowControl {
 public:
  /// \param size  values per instance
  FlowControl(Executor& executor, const layers::FlowIntegration& options, Index size, Index instances)
      : options_(options),
        size_(size),
        chunks_(std::clamp<Index>(size / 64, 1, 1024)),
        sizes_(executor, "layers", instances),
        largest_(executor, "layers", instances * chunks_) {}

  /// Starts from X(0). A flow from values that are not finite stays there: its loss shows it.
  void begin(Executor& executor, Index instances, const S* x) {
    instances_.assign(static_cast<std::size_t>(instances), Instance{.size = static_cast<S>(options_.first_step)});
    const std::vector<S> largest = read(executor, {size_, chunks_, x, {}, nullptr, nullptr, S(0), S(0), nullptr});
    for (std::size_t i = 0; i < instances_.size(); ++i) {
      if (!(largest[i] <= std::numeric_limits<S>::max())) instances_[i].time = options_.time;
    }
  }
  /// Are all instances at T?
  [[nodiscard]] bool ended() const noexcept {
    return std::all_of(instances_.begin(), instances_.end(), [&](const Instance& i) { return at_end(i); });
  }
  /// The lengths of the next step that is tried, in the memory of the executor.
  ///
  /// \throws FlowError  the tolerances ask for more than max_steps steps
  [[nodiscard]] const S* propose() {
    for (Instance& i : instances_) {
      if (at_end(i)) {
        i.taken = S(0);
        continue;
      }
      if (i.accepted + i.rejected == options_.max_steps)
        throw sheafnn::detail::too_many_steps(options_, i.time, i.accepted, i.rejected, i.size);
      i.last = options_.ends(i.time, static_cast<double>(i.size));
      if (i.last) i.size = static_cast<S>(options_.time - i.time);
      i.taken = i.size;
    }
    upload();
    return sizes_.data();
  }
  /// Accepts the steps with errors of at most 1, and chooses the next sizes. It does so as Boost.Odeint does for a method of
  /// order 5 with an estimate of order 4.
  ///
  /// \param x, slope, error  X, K_1 and the error of a step of length 1
  /// \returns is any step accepted?
  bool decide(Executor& executor, const S* x, const S* slope, const kernels::StageSum<S>& error) {
    const std::vector<S> largest =
        read(executor, {size_, chunks_, x, error, slope, sizes_.data(), options_.absolute<S>(),
                        static_cast<S>(options_.relative_tolerance), nullptr});
    bool any = false;
    for (std::size_t k = 0; k < instances_.size(); ++k) {
      Instance& i = instances_[k];
      if (i.taken == S(0)) continue;
      if (largest[k] > S(1)) {
        i.size *= std::max(S(0.9) * std::pow(largest[k], S(-1) / 3), S(0.2));
        i.taken = S(0);
        ++i.rejected;
        continue;
      }
      i.time = i.last ? options_.time : i.time + static_cast<double>(i.taken);
      if (largest[k] < S(0.5)) i.size *= S(0.9) * std::pow(std::max(largest[k], S(1.0 / 3125)), S(-1) / 5);
      ++i.accepted;
      any = true;
    }
    upload();
    return any;
  }
  /// After decide(): the lengths of the accepted steps, 0 for other instances. In the memory of the executor and on the host.
  [[nodiscard]] const S* accepted() const noexcept { return sizes_.data(); }
  [[nodiscard]] const std::vector<S>& accepted_sizes() const noexcept { return host_; }

 private:
  struct Instance {
    double time = 0;
    S size = S(0);   ///< to try next
    S taken = S(0);  ///< in the current step
    bool last = false;
    Index accepted = 0, rejected = 0;
  };

  [[nodiscard]] bool at_end(const Instance& i) const noexcept { return !(i.time < options_.time); }
  void upload() {
    host_.clear();
    for (const Instance& i : instances_) host_.push_back(i.taken);
    sizes_.upload(host_);
  }
  /// The largest number of every instance.
  [[nodiscard]] std::vector<S> read(Executor& executor, LargestOfChunk<S> kernel) {
    kernel.out = largest_.data();
    const Index instances = static_cast<Index>(instances_.size());
    executor.launch(chunks_, instances, kernel);
    const std::vector<S> all = largest_.download();
    std::vector<S> r;
    for (Index i = 0; i < instances; ++i) {
      const auto first = all.begin() + i * chunks_;
      r.push_back(*std::max_element(first, first + chunks_));
    }
    return r;
  }

  layers::FlowIntegration options_;
  Index size_, chunks_;
  std::vector<Instance> instances_;
  std::vector<S> host_;
  Array<Executor, S> sizes_, largest_;
};

}  // namespace sheafnn::batch::detail
