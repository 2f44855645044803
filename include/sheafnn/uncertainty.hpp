/// \file
/// The uncertainty room: quality and calibration of predictions, uncertainty from samples, temperature scaling.
#pragma once

#include "sheafnn/uncertainty/metrics.hpp"
#include "sheafnn/uncertainty/ranking_metrics.hpp"
#include "sheafnn/uncertainty/sampling.hpp"
#include "sheafnn/uncertainty/temperature.hpp"
