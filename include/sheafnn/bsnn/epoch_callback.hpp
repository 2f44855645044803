/// \file
/// EpochCallback: what train() calls after every epoch, and what it may answer.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>

#include "sheafnn/bsnn/epoch_report.hpp"

namespace sheafnn {

/// What a callback asks for: the next epoch, or the end of the training with the best parameters so far.
enum class EpochAction { keep_training, stop };

/// A function of an EpochReport that returns an EpochAction, or nothing to continue. It must not change the model.
class EpochCallback {
 public:
  EpochCallback() = default;
  EpochCallback(std::nullptr_t) {}  // NOLINT(google-explicit-constructor)

  // clang-tidy does not see the constraint.
  // NOLINTBEGIN(google-explicit-constructor, bugprone-forwarding-reference-overload)
  template <class Call>
    requires(!std::same_as<std::remove_cvref_t<Call>, EpochCallback>)
  &&std::invocable<std::remove_cvref_t<Call>&, const EpochReport&> EpochCallback(Call&& call) {
    // NOLINTEND(google-explicit-constructor, bugprone-forwarding-reference-overload)
    using Own = std::remove_cvref_t<Call>;
    if constexpr (requires { static_cast<bool>(call == nullptr); }) {
      if (call == nullptr) return;
    }
    if constexpr (std::same_as<std::invoke_result_t<Own&, const EpochReport&>, EpochAction>) {
      call_ = std::forward<Call>(call);
    } else {
      static_assert(std::is_void_v<std::invoke_result_t<Own&, const EpochReport&>>,
                    "on_epoch returns EpochAction or nothing");
      call_ = [own = Own(std::forward<Call>(call))](const EpochReport& report) mutable {
        own(report);
        return EpochAction::keep_training;
      };
    }
  }

  /// Is there anything to call?
  [[nodiscard]] explicit operator bool() const noexcept { return call_ != nullptr; }
  /// \throws std::bad_function_call  there is nothing to call
  EpochAction operator()(const EpochReport& report) const { return call_(report); }

 private:
  std::function<EpochAction(const EpochReport&)> call_;
};

}  // namespace sheafnn
