/// \file
/// Options by name, from texts: the options of all networks and of a training.
#pragma once

#include <map>
#include <sheafnn/core/config.hpp>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/core/option.hpp>
#include <sheafnn/io/option_text.hpp>
#include <string>
#include <string_view>

namespace python {

using Texts = std::map<std::string, std::string>;

/// Options of a network that its data determine.
[[nodiscard]] inline bool is_decided(std::string_view key) {
  return key == "features" || key == "classes" || key == "feature_plan";
}
/// Columns of features that a network of these options takes, without indicators of missing values.
template <class Options>
[[nodiscard]] sheafnn::Index given_columns_of(const Options& options) {
  return options.feature_plan.empty() ? options.features : options.feature_plan.given_columns();
}
/// Options of a training that are parameters of their own, or of its programs.
[[nodiscard]] inline bool is_elsewhere(std::string_view key) { return key == "seed" || key == "checkpoint_every"; }

/// Sets the options that `texts` names.
///
/// \param mapping  the parameter that the texts were given by
/// \throws std::invalid_argument  a text that is not a value of its option, or an unknown option; the message lists the
///                                options
template <class Options>
void set_options(Texts texts, Options& options, std::string_view mapping, std::string_view model) {
  std::string names;
  const auto set = [&](const sheafnn::Option& option, auto& field) {
    if (is_decided(option.key) || is_elsewhere(option.key)) return;
    names += (names.empty() ? "" : ", ") + std::string(option.key);
    const auto found = texts.find(option.key);
    if (found == texts.end()) return;
    sheafnn::io::parse_option(found->first, found->second, field);
    sheafnn::Option named = option;
    named.field = nullptr;  // messages name the key, not the member
    sheafnn::detail::check_option(named, field);
    texts.erase(found);
  };
  for_each_option(set, options);
  if (texts.empty()) return;
  sheafnn::throw_invalid_argument(sheafnn::detail::concat(mapping, "['", texts.begin()->first, "']"),
                                  texts.begin()->second,
                                  sheafnn::detail::concat(model, " has no such option; it has ", names));
}

}  // namespace python
