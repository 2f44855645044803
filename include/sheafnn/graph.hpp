/// \file
/// The folder graph/: graphs, node features, datasets, statistics, splits and generators.
#pragma once

#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/graph/directed_arcs.hpp"
#include "sheafnn/graph/feature_plan_text.hpp"
#include "sheafnn/graph/feature_treatment.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/graph/fit_features.hpp"
#include "sheafnn/graph/from_eigen.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/graph_of.hpp"
#include "sheafnn/graph/hypergraph.hpp"
#include "sheafnn/graph/karate.hpp"
#include "sheafnn/graph/labels.hpp"
#include "sheafnn/graph/splits.hpp"
#include "sheafnn/graph/statistics.hpp"
#include "sheafnn/graph/synthetic.hpp"
#include "sheafnn/graph/synthetic_hypergraph.hpp"
