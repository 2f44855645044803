/// \file
/// BatchComplexStart: the complex features X_1 = (1 + i) H or H of all runs, with which directed layers start, and H̄ = Re
/// X̄_1 [+ Im X̄_1]. Source: math: "Directed sheaves" (3.53). For one network: layers/complex_start.hpp. Features as in
/// directed_kernels.hpp.
#pragma once

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/divisor.hpp"
#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/feature_kernels.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/core/config.hpp"

namespace sheafnn::batch::detail {

/// item: element of H, group: run.
template <class S>
struct StartComplex {
  const S* in;
  Index size;  ///< of H
  Divisor channels;
  bool imaginary;
  S* out;

  SHEAFNN_HD void operator()(Index item, Index run) const {
    S* const to = out + 2 * run * size + item + item / channels * channels;
    const S value = in[run * size + item];
    to[0] = value;
    to[channels] = imaginary ? value : S(0);
  }
};
/// H̄, the sum over copies; item: element of H, group: run.
template <class S>
struct StartComplexBackward {
  const S* bar;
  Index size, copies;
  Divisor channels;
  bool imaginary;
  S* out;

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const S* from = bar + 2 * run * copies * size + item + item / channels * channels;
    S sum = S(0);
    for (Index copy = 0; copy < copies; ++copy, from += 2 * size) {
      sum += imaginary ? from[0] + from[channels] : from[0];
    }
    out[run * size + item] = sum;
  }
};

/// Buffers and passes of the start of all runs; see the file comment.
template <class Executor, class S>
class BatchComplexStart {
 public:
  /// \param shape      of X_1
  /// \param imaginary  does the imaginary part start as the real part does?
  BatchComplexStart(Executor& executor, const FeatureShape<S>& shape, bool imaginary, const BatchSize& batch)
      : size_(shape.size() / 2),
        channels_(shape.channels / 2),
        runs_(batch.runs),
        imaginary_(imaginary),
        output_(executor, "embeddings", 2 * runs_ * size_),
        bar_(executor, "layers", batch.trains() ? runs_ * size_ : 0) {}

  /// \param embedding  H of all runs \returns X_1 of all runs
  const S* forward(Executor& executor, const S* embedding) {
    executor.launch(size_, runs_, StartComplex<S>{embedding, size_, channels_, imaginary_, output_.data()});
    return output_.data();
  }
  /// \param bar  X̄_1 of all instances \returns H̄ of all runs
  S* backward(Executor& executor, const Pass& pass, const S* bar) {
    executor.launch(size_, runs_,
                    StartComplexBackward<S>{bar, size_, pass.copies, channels_, imaginary_, bar_.data()});
    return bar_.data();
  }

 private:
  Index size_, channels_, runs_;
  bool imaginary_;
  Array<Executor, S> output_, bar_;
};

}  // namespace sheafnn::batch::detail
