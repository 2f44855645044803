/// \file
/// Figures of a learned sheaf (SheafUse) as a text of JSON, and back. A checkpoint has them in its metadata, and the
/// programs' .npz files of learned sheaves as a text, both under the key "sheaf_use". Files need not have them.
///
///     const auto use = sheafnn::sheaf_use(model, data, data.splits[0].validation);
///     sheafnn::io::save_checkpoint("model.safetensors", model, {{"sheaf_use", sheafnn::io::to_text(use)}});
///     const auto info = sheafnn::io::read_checkpoint_info("model.safetensors");
///     const auto saved = sheafnn::io::saved_sheaf_use("model.safetensors", info.metadata);  // or none
///
/// | key                         | value                                                                       |
/// | --------------------------- | --------------------------------------------------------------------------- |
/// | bayesian, of_nodes          | true or false                                                               |
/// | kl_per_pair, negative_share | a number                                                                    |
/// | spread                      | quantiles by the name of the parameter; left out where there is none        |
/// | turn_degrees                | quantiles: numbers under 5%, 50%, 95% and std                               |
/// | nodes, loss, accuracy       | a whole number, and numbers                                                 |
/// | permuted, prior, identity   | numbers under loss, rise, standard_error and accuracy                       |
///
/// What a model does not have is null, and what a text leaves out is read as null. Other keys are passed over.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/sheaf_use_figures.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/io/file.hpp"

namespace sheafnn::io {

/// The key of the text in metadata and in .npz files.
inline constexpr const char* sheaf_use_key = "sheaf_use";

namespace detail {

/// Calls visit(key, figure) for the figures of …
template <class Visit>
void for_each_figure(SheafQuantiles& of, const Visit& visit) {
  visit("5%", of.low);
  visit("50%", of.median);
  visit("95%", of.high);
  visit("std", of.deviation);
}
template <class Visit>
void for_each_figure(ChangedSheafLoss& of, const Visit& visit) {
  visit("loss", of.loss);
  visit("rise", of.rise);
  visit("standard_error", of.standard_error);
  visit("accuracy", of.accuracy);
}
/// … and for all that a SheafUse has.
template <class Visit>
void for_each_figure(SheafUse& of, const Visit& visit) {
  visit("bayesian", of.bayesian);
  visit("of_nodes", of.of_nodes);
  visit("kl_per_pair", of.kl);
  visit("spread", of.spread);
  visit("turn_degrees", of.turn);
  visit("negative_share", of.negative);
  visit("nodes", of.nodes);
  visit("loss", of.loss);
  visit("accuracy", of.accuracy);
  visit("permuted", of.permuted);
  visit("prior", of.prior);
  visit("identity", of.identity);
}

[[nodiscard]] inline nlohmann::ordered_json figure_json(bool value) { return value; }
[[nodiscard]] inline nlohmann::ordered_json figure_json(Index value) { return value; }
[[nodiscard]] inline nlohmann::ordered_json figure_json(double value) { return value; }
[[nodiscard]] inline nlohmann::ordered_json figure_json(const std::vector<SheafSpread>& spread);
template <class Figures>
[[nodiscard]] nlohmann::ordered_json figure_json(Figures figures) {
  nlohmann::ordered_json r = nlohmann::ordered_json::object();
  for_each_figure(figures, [&](const char* key, const auto& figure) {
    nlohmann::ordered_json value = figure_json(figure);
    if (!value.is_object() || !value.empty()) r[key] = std::move(value);
  });
  return r;
}
inline nlohmann::ordered_json figure_json(const std::vector<SheafSpread>& spread) {
  nlohmann::ordered_json r = nlohmann::ordered_json::object();
  for (const SheafSpread& one : spread) r[one.name] = figure_json(one.values);
  return r;
}

/// Reads figures, and says where a text is wrong.
class SheafUseReader {
 public:
  using Json = nlohmann::ordered_json;

  explicit SheafUseReader(const std::string& where) : where_(where) {}

  void read(const std::string& key, const Json& json, bool& figure) const {
    if (!json.is_boolean()) wrong(key, "true or false");
    figure = json.get<bool>();
  }
  void read(const std::string& key, const Json& json, Index& figure) const {
    if (!json.is_number_integer() || json.get<double>() < 0 || json.get<double>() > 9e18)
      wrong(key, "a whole number");
    figure = json.get<Index>();
  }
  void read(const std::string& key, const Json& json, double& figure) const {
    if (!json.is_number()) wrong(key, "a number or null");
    figure = json.get<double>();
  }
  void read(const std::string& key, const Json& json, std::vector<SheafSpread>& spread) const {
    if (!json.is_object()) wrong(key, "an object");
    for (const auto& [name, values] : json.items()) {
      spread.push_back({printable(name), {}});
      read(name, values, spread.back().values);
    }
  }
  template <class Figures>
  void read(const std::string& key, const Json& json, Figures& figures) const {
    if (!json.is_object()) wrong(key, "an object");
    for_each_figure(figures, [&](const char* name, auto& figure) {
      const auto found = json.find(name);
      if (found != json.end() && !found->is_null()) read(name, *found, figure);
    });
  }

 private:
  [[noreturn]] void wrong(const std::string& key, const char* expected) const {
    fail(where_, sheaf_use_key, ": '", printable(key), "' must be ", expected);
  }

  const std::string& where_;
};

}  // namespace detail

/// The figures as JSON: NaN becomes null when it is written. Takes any.
[[nodiscard]] inline nlohmann::ordered_json sheaf_use_json(const SheafUse& use) {
  return detail::figure_json(use);
}

/// One line of printable ASCII: same figures, same text. Takes any.
[[nodiscard]] inline std::string to_text(const SheafUse& use) {
  return sheaf_use_json(use).dump(-1, ' ', /*ensure_ascii=*/true);
}

/// Reads what to_text() makes.
///
/// \param where  the file it comes from, for messages
/// \throws std::runtime_error  naming the file and the key: no JSON object, or a value of another type
[[nodiscard]] inline SheafUse parse_sheaf_use(const std::string& where, std::string_view text) {
  const auto json = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) detail::fail(where, sheaf_use_key, " must be a JSON object");
  SheafUse use;
  detail::SheafUseReader(where).read(sheaf_use_key, json, use);
  return use;
}

/// The figures in the metadata of a checkpoint, or none.
///
/// \throws std::runtime_error  as parse_sheaf_use()
[[nodiscard]] inline std::optional<SheafUse> saved_sheaf_use(const std::string& where,
                                                             const std::map<std::string, std::string>& metadata) {
  const auto found = metadata.find(sheaf_use_key);
  if (found == metadata.end()) return {};
  return parse_sheaf_use(where, found->second);
}

}  // namespace sheafnn::io
