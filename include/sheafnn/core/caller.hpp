/// \file
/// Who calls the library, whose names of options messages use.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace sheafnn {

/// The language of the names in messages.
enum class Caller : std::uint8_t { cpp, program, python };

namespace detail {

inline std::atomic<Caller> caller = Caller::cpp;

/// The names of one thing that a caller can change. An empty name: this caller has no such thing.
struct CallerName {
  std::string_view cpp, program, python;

  /// The name that this process's caller knows.
  [[nodiscard]] std::string_view text() const noexcept {
    switch (caller.load(std::memory_order_relaxed)) {
      case Caller::program:
        return program;
      case Caller::python:
        return python;
      case Caller::cpp:
        break;
    }
    return cpp;
  }
};

/// Options of files, each in the words of C++, of programs and of Python.
namespace caller_name {
inline constexpr CallerName ignored_columns = {"TextOptions::ignored_columns", "--ignore-columns",
                                               "ignore_columns"};
inline constexpr CallerName ignored_edge_columns = {"TextOptions::ignored_edge_columns", "--ignore-edge-columns",
                                                    "ignore_edge_columns"};
inline constexpr CallerName label = {"TextOptions::label", "--label", "label"};
inline constexpr CallerName targets = {"TextOptions::targets", "--target", "targets"};
inline constexpr CallerName identity_features = {"TextOptions::identity_features", "--identity-features",
                                                 "identity_features=True"};
inline constexpr CallerName missing_labels = {"missing_labels", "--missing-labels", "missing_labels"};
inline constexpr CallerName edge_types = {"TextOptions::edge_types", "--edge-types", "edge_types=True"};
inline constexpr CallerName node_types = {"TextOptions::node_types", "--stalks of the program train",
                                          "node_types=True"};
inline constexpr CallerName edge_values = {"TextOptions::edge_labels or edge_target",
                                           "--edge-labels or --edge-target of the program links",
                                           "edge_labels or edge_target"};
inline constexpr CallerName make_splits = {"random_splits()", "--make-splits", "make_splits()"};
inline constexpr CallerName ogb_split = {"OgbConversion::split", "--split", "split"};
}  // namespace caller_name

}  // namespace detail

/// Says who calls the library in this process; C++ unless something else is said. Takes any caller.
inline void set_caller(Caller caller) noexcept { detail::caller.store(caller, std::memory_order_relaxed); }

}  // namespace sheafnn
