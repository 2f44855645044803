/// \file
/// What most programs include, precompiled for all of them where reading it is what their compilation costs (CMakeLists.txt).
/// Every program still includes what it uses.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <sheafnn/bsnn.hpp>
#include <sheafnn/every_layer.hpp>
#include <sheafnn/io/checkpoint.hpp>
#include <sheafnn/io/datasets.hpp>
#include <sheafnn/io/learned_file.hpp>
#include <sheafnn/io/model_tensors.hpp>

#include "models/outcome.hpp"
#include "models/program.hpp"
#include "models/registry.hpp"
#include "models/train_settings.hpp"
