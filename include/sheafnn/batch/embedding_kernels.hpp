/// \file
/// Kernels on embeddings between the parts of a network.
#pragma once

#include "sheafnn/batch/divisor.hpp"
#include "sheafnn/core/config.hpp"

namespace sheafnn::batch::detail {

/// Copies features of runs to each of their copies; item: element, group: instance.
template <class S>
struct CopyToInstances {
  const S* in;
  Index size;
  Divisor copies;
  S* out;
  SHEAFNN_HD void operator()(Index item, Index instance) const {
    out[instance * size + item] = in[instance / copies * size + item];
  }
};

/// Adds features of all copies to their run's; item: element, group: run.
template <class S>
struct AddCopies {
  const S* in;
  Index size, copies;
  S* out;
  SHEAFNN_HD void operator()(Index item, Index run) const {
    S sum = S(0);
    for (Index copy = 0; copy < copies; ++copy) sum += in[(run * copies + copy) * size + item];
    out[run * size + item] = sum;
  }
};

/// Adds features to other features; item: element, group: instance.
template <class S>
struct AddFeatures {
  const S* in;
  Index size;
  S* out;
  SHEAFNN_HD void operator()(Index item, Index instance) const {
    out[instance * size + item] += in[instance * size + item];
  }
};

}  // namespace sheafnn::batch::detail
