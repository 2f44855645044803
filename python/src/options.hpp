/// \file
/// Options by name, from texts: those of all networks and of a training.
#pragma once

#include <map>
#include <optional>
#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/io/model_options.hpp>
#include <string>
#include <string_view>

namespace python {

using Texts = std::map<std::string, std::string>;

/// Options of a network that its data decide.
[[nodiscard]] inline bool is_decided(std::string_view key) {
  return key == "features" || key == "classes" || key == "feature_plan";
}

/// Calls visit(key, field) for every option of a training but the callbacks and what resumes one.
template <class Options, class Visit>
void for_each_training_option(Options& options, const Visit& visit) {
  visit("epochs", options.epochs);
  visit("patience", options.patience);
  visit("stop_on", options.stop_on);
  visit("learning_rate", options.learning_rate);
  visit("sheaf_learning_rate", options.sheaf_learning_rate);
  visit("weight_decay", options.weight_decay);
  visit("sheaf_decay", options.sheaf_decay);
  visit("decay", options.decay);
  visit("input_dropout", options.input_dropout);
  visit("dropout", options.dropout);
  visit("kl_schedule", options.kl_schedule);
  visit("kl_maximum", options.kl_maximum);
  visit("kl_estimator", options.kl_estimator);
  visit("training_samples", options.training_samples);
  visit("sample_loss", options.sample_loss);
  visit("samples", options.samples);
  visit("threads", options.threads);
}

namespace detail {

using sheafnn::io::detail::parse_option;

inline void parse_option(const std::string& key, const std::string& text, sheafnn::StopOn& value) {
  value = sheafnn::parse_name<sheafnn::StopOn>(key, text, sheafnn::stop_on_names);
}
inline void parse_option(const std::string& key, const std::string& text, sheafnn::SampleLoss& value) {
  value = sheafnn::parse_name<sheafnn::SampleLoss>(key, text, sheafnn::sample_loss_names);
}
inline void parse_option(const std::string& key, const std::string& text, sheafnn::KlSchedule& value) {
  value = sheafnn::parse_name<sheafnn::KlSchedule>(key, text, sheafnn::kl_schedule_names);
}
inline void parse_option(const std::string& key, const std::string& text, sheafnn::KlEstimator& value) {
  value = sheafnn::parse_name<sheafnn::KlEstimator>(key, text, sheafnn::kl_estimator_names);
}
inline void parse_option(const std::string& key, const std::string& text, sheafnn::WeightDecay& value) {
  sheafnn::require(text == "l2" || text == "decoupled", key, text, "choose l2 or decoupled");
  value = text == "l2" ? sheafnn::WeightDecay::l2 : sheafnn::WeightDecay::decoupled;
}
inline void parse_option(const std::string& key, const std::string& text, std::optional<double>& value) {
  parse_option(key, text, value.emplace());
}
inline void parse_option(const std::string& key, const std::string& text, int& value) {
  sheafnn::Index wide = 0;
  parse_option(key, text, wide);
  sheafnn::require_between(key, wide, 0, 1'000'000);
  value = static_cast<int>(wide);
}

}  // namespace detail

/// Sets the fields that `texts` names, and takes them out of it.
///
/// \param walk  walk(options, visit) calls visit(key, field) for every field
/// \throws std::invalid_argument  a text that is no value of its field
template <class Options, class Walk>
void take_options(Texts& texts, Options& options, const Walk& walk) {
  walk(options, [&](const char* key, auto& field) {
    const auto found = texts.find(key);
    if (found == texts.end()) return;
    using detail::parse_option;
    parse_option(found->first, found->second, field);
    texts.erase(found);
  });
}

/// \param mapping  the parameter that the texts were given by
/// \throws std::invalid_argument  there is something left in `texts`; `options` has the names that there are
template <class Options, class Walk>
void require_empty(const Texts& texts, Options& options, const Walk& walk, std::string_view mapping,
                   std::string_view model) {
  if (texts.empty()) return;
  std::string names;
  walk(options, [&](const char* key, auto&) {
    if (!is_decided(key)) names += (names.empty() ? "" : ", ") + std::string(key);
  });
  sheafnn::throw_invalid_argument(sheafnn::detail::concat(mapping, "['", texts.begin()->first, "']"),
                                  texts.begin()->second,
                                  sheafnn::detail::concat(model, " has no such option; it has ", names));
}

}  // namespace python
