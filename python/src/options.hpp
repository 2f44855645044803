/// \file
/// Options by name, from texts: those of all networks and of a training.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/core/option.hpp>
#include <sheafnn/io/option_text.hpp>
#include <string>
#include <string_view>

namespace python {

using Texts = std::map<std::string, std::string>;

/// Options that are no entries of the parameters `network` and `training`: data or other parameters decide them.
[[nodiscard]] inline bool is_decided(std::string_view key) {
  constexpr std::array<std::string_view, 5> keys = {"features", "classes", "feature_plan", "seed",
                                                    "checkpoint_every"};
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

/// Sets the options that `texts` names.
///
/// \param mapping  the parameter that the texts were given by
/// \throws std::invalid_argument  a text that is no value of its option, or no option of that name; names those that there are
template <class Options>
void set_options(Texts texts, Options& options, std::string_view mapping, std::string_view model) {
  std::string names;
  const auto set = [&](const sheafnn::Option& option, auto& field) {
    if (is_decided(option.key)) return;
    names += (names.empty() ? "" : ", ") + std::string(option.key);
    const auto found = texts.find(option.key);
    if (found == texts.end()) return;
    sheafnn::io::parse_option(found->first, found->second, field);
    texts.erase(found);
  };
  for_each_option(set, options);
  if (texts.empty()) return;
  sheafnn::throw_invalid_argument(sheafnn::detail::concat(mapping, "['", texts.begin()->first, "']"),
                                  texts.begin()->second,
                                  sheafnn::detail::concat(model, " has no such option; it has ", names));
}

}  // namespace python
