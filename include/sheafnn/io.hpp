/// \file
/// The io room: datasets from .npz files and Geom-GCN folders, tensors in the safetensors format.
#pragma once

#include "sheafnn/io/checkpoint.hpp"
#include "sheafnn/io/datasets.hpp"
#include "sheafnn/io/geom_gcn.hpp"
#include "sheafnn/io/npz.hpp"
#include "sheafnn/io/safetensors.hpp"
