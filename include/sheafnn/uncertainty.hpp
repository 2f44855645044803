/// \file
/// The folder uncertainty/: quality and calibration of predictions, uncertainty from samples, temperature scaling,
/// conformal prediction sets, intervals of numbers, rejection and detection.
#pragma once

#include "sheafnn/uncertainty/calibration.hpp"
#include "sheafnn/uncertainty/conformal.hpp"
#include "sheafnn/uncertainty/graph_temperature.hpp"
#include "sheafnn/uncertainty/intervals.hpp"
#include "sheafnn/uncertainty/metrics.hpp"
#include "sheafnn/uncertainty/ranking_metrics.hpp"
#include "sheafnn/uncertainty/rejection.hpp"
#include "sheafnn/uncertainty/sampling.hpp"
#include "sheafnn/uncertainty/temperature.hpp"
