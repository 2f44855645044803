/// \file
/// Options of tables for data without tables: they are refused, and not passed over.
#pragma once

#include <string_view>

#include "sheafnn/io/file.hpp"
#include "sheafnn/io/text_dataset.hpp"

namespace sheafnn::io::detail {

/// \param where  a name or path of data that are no folder of tables
/// \throws std::runtime_error  an option that belongs to such a folder is given
inline void refuse_table_options(std::string_view where, const TextOptions& options) {
  const auto refuse = [&](const CallerName& option, std::string_view value) {
    fail(where, "is no folder of tables, to which the option ", option.text(), " (", printable(value),
         ") belongs");
  };
  if (!options.ignored_columns.empty()) refuse(caller_name::ignored_columns, options.ignored_columns.front());
  if (!options.ignored_edge_columns.empty()) {
    refuse(caller_name::ignored_edge_columns, options.ignored_edge_columns.front());
  }
  if (options.label != TextOptions().label) refuse(caller_name::label, options.label);
  if (options.identity_features) refuse(caller_name::identity_features, "on");
}

}  // namespace sheafnn::io::detail
