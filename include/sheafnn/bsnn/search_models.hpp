/// \file
/// A search among types of models, with the settings of search_settings():
///
///     using Rotations = sheafnn::Bsnn<sheafnn::SpecialOrthogonal<3>>;
///     const auto found = sheafnn::search<sheafnn::Nsd<sheafnn::Diagonal<2>>, Rotations>(data, {.seconds = 60});
///     found.visit([&]<class Model>(const typename Model::Options& options, const sheafnn::TrainOptions& training) {
///       Model model(options, training.seed);
///       const auto result = sheafnn::train(model, data, data.splits[0], training);
///     });
///
/// Every named type is compiled, so name few types.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "sheafnn/bsnn/cooperative_options.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/bsnn/presets.hpp"
#include "sheafnn/bsnn/search.hpp"
#include "sheafnn/bsnn/search_settings.hpp"
#include "sheafnn/bsnn/search_training.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/graph/dataset.hpp"

namespace sheafnn {

/// A setting of one of the types of a search: its index among them, and its options.
struct ModelSetting {
  std::string name;
  std::size_t type = 0;
  std::variant<ModelOptions, CooperativeOptions> options;
  TrainOptions training;
};

namespace detail {

/// Calls use.operator()<Model>() for the type of that index.
template <class... Models, class Use>
void with_type(std::size_t number, const Use& use) {
  std::size_t type = 0;
  const auto call = [&]<class Model>() {
    if (number == type++) use.template operator()<Model>();
  };
  (call.template operator()<Models>(), ...);
}

}  // namespace detail

/// The result of a search among types of models.
template <class... Models>
struct ModelSearch {
  SearchResult result;                 ///< a row for each of `settings`
  std::vector<ModelSetting> settings;  ///< the settings that were tried

  /// The best setting. Takes any result of search().
  [[nodiscard]] const ModelSetting& winner() const { return settings[result.winner()]; }
  /// Calls f.operator()<Model>(options, training) of the winner.
  template <class Use>
  void visit(const Use& use) const {
    const ModelSetting& best = winner();
    detail::with_type<Models...>(best.type, [&]<class Model>() {
      use.template operator()<Model>(std::get<typename Model::Options>(best.options), best.training);
    });
  }
};

namespace detail {

/// Is a setting one of this type of model?
template <class Model>
[[nodiscard]] bool is_setting_of(const SearchSetting& setting) {
  if (setting.model != Model::kind || setting.stalk_dimension != Model::stalk_dimension) return false;
  if constexpr (std::is_same_v<typename Model::Options, ModelOptions>) return setting.maps == Model::Family::name;
  return true;
}

/// The settings of a type of model; if the list has no setting for it, the preset for the data.
template <class Model>
void add_settings(const Dataset& data, std::size_t type, const TrainOptions& given,
                  std::vector<ModelSetting>& all) {
  using Options = typename Model::Options;
  const auto add = [&](std::string_view name, const auto& set) {
    Options options;
    TrainOptions training = given;
    options.features = data.feature_count();
    options.classes = data.class_count;
    set(options, training);
    training.stop_on = search_stop_on(data);
    all.push_back({std::string(name), type, options, training});
  };
  const std::size_t before = all.size();
  for (const SearchSetting& setting : search_settings()) {
    if (!is_setting_of<Model>(setting)) continue;
    add(setting.name, [&](Options& options, TrainOptions& training) { apply(setting, options, training); });
  }
  if (all.size() > before) return;
  add(concat(Model::kind, ", preset"), [&](Options& options, TrainOptions& training) {
    apply(choose_preset(data, data.splits.front()), options, Model::bayesian, training);
  });
}

}  // namespace detail

/// Searches among the settings of types of models, on all splits of a dataset. The search does not read the test nodes
/// (search_splits()). Types that are not in the list get the preset for the data.
///
/// \tparam Models    SheafModel, CooperativeModel, …: models with ModelOptions or CooperativeOptions
/// \param options    `epochs` is what the settings say
/// \param training   seed, threads and on_epoch; settings replace the rest
/// \throws std::invalid_argument  as search(), search_splits() and train()
/// \throws std::runtime_error     every setting failed
template <class... Models>
  requires(sizeof...(Models) > 0)
[[nodiscard]] ModelSearch<Models...> search(const Dataset& data, const SearchOptions& options = {},
                                            const TrainOptions& training = {}) {
  validate(data);
  const std::vector<Split> splits = search_splits(data, data.splits, training.seed);
  ModelSearch<Models...> r;
  std::size_t type = 0;
  (detail::add_settings<Models>(data, type++, training, r.settings), ...);
  detail::PlansOfSearch plans(data.features);
  const auto run = [&](const ModelSetting& setting, const Split& split, const TrainOptions& own) {
    TrainResult result;
    detail::with_type<Models...>(setting.type, [&]<class Model>() {
      Model model(std::get<typename Model::Options>(setting.options), own.seed);
      model.set_feature_plan(plans.of(model.options().feature_treatment));
      result = train(model, data, split, own);
    });
    return result;
  };
  r.result = search_trainings(r.settings, splits, options, run);
  return r;
}

}  // namespace sheafnn
