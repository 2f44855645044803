/// \file
/// The networks of the table of planted sheaves: what a training is given, and what is measured of it. Compiled for one family
/// at a time (training.hpp).
#pragma once

#include <sheafnn/bsnn/cooperative_options.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/sheaf/families.hpp>
#include <sheafnn/sheaf/planted_task.hpp>
#include <string_view>

#include "planted/figures.hpp"

namespace planted {

struct Setting {
  sheafnn::ModelOptions model;
  sheafnn::CooperativeOptions cooperative;
  sheafnn::TrainOptions train;
  Index test_samples = 50;  ///< posterior samples behind the figures of the best epoch
};

/// What a network does not have is NaN.
struct Figures {
  double weight_decay = unknown, sheaf_decay = unknown, kl_weight = unknown;  ///< chosen by the validation loss
  double validation_loss = unknown, accuracy = unknown, nll = unknown;
  double share = unknown;  ///< accuracy as a share of that with the true sheaf given
  Index best_epoch = 0;
  double seconds = unknown;                                    ///< of the training
  double transport_error = unknown, holonomy_error = unknown;  ///< medians in degrees
  double turn = unknown, true_turn = unknown;                  ///< median degrees of transports
  double right_signs = unknown;                                ///< of diagonal maps
  double kappa_low = unknown, kappa = unknown,
         kappa_high = unknown;                            ///< 5, 50, 95 %; of normal posteriors of sigma
  double rank_correlation = unknown, coverage = unknown;  ///< of unreliable relations
  double permuted_rise = unknown;                         ///< of the validation loss, in nats
};

/// Calls visit(name, value) for all but the epoch.
template <class Visit>
void for_each_figure(const Figures& f, const Visit& visit) {
  visit("weight_decay", f.weight_decay);
  visit("sheaf_decay", f.sheaf_decay);
  visit("kl_weight", f.kl_weight);
  visit("validation_loss", f.validation_loss);
  visit("accuracy", f.accuracy);
  visit("share_of_given", f.share);
  visit("nll", f.nll);
  visit("seconds", f.seconds);
  visit("transport_error", f.transport_error);
  visit("holonomy_error", f.holonomy_error);
  visit("turn", f.turn);
  visit("true_turn", f.true_turn);
  visit("right_signs", f.right_signs);
  visit("kappa_5%", f.kappa_low);
  visit("kappa_50%", f.kappa);
  visit("kappa_95%", f.kappa_high);
  visit("rank_correlation", f.rank_correlation);
  visit("coverage", f.coverage);
  visit("permuted_rise", f.permuted_rise);
}

/// Trains a network of maps of this family: given (with the true sheaf), expected (with the sheaf that features tell), nsd,
/// bsnn or predictive (bsnn, trained by the loss of the mean prediction).
///
/// \param expected  where transports were drawn, the ones that they were drawn around; otherwise the truth
template <class Family>
[[nodiscard]] Figures train_learned(std::string_view network, const sheafnn::PlantedTask<Family>& task,
                                    const sheafnn::CellularSheaf<Family>& expected, const Setting& setting);
/// identity, csnn or bcsnn, of stalk dimension D.
template <int D>
[[nodiscard]] Figures train_other(std::string_view network, const sheafnn::Dataset& data, const Setting& setting);

}  // namespace planted
