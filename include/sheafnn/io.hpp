/// \file
/// The folder io/: datasets from .npz files, folders of Geom-GCN and OGB, and text files (CSV, Matrix Market). Files of
/// models, of unfinished trainings and of tensors in the safetensors format; .npz files of what models have learned.
#pragma once

#include "sheafnn/io/checkpoint.hpp"
#include "sheafnn/io/datasets.hpp"
#include "sheafnn/io/folder_rows.hpp"
#include "sheafnn/io/format_version.hpp"
#include "sheafnn/io/geom_gcn.hpp"
#include "sheafnn/io/hypergraph.hpp"
#include "sheafnn/io/learned_file.hpp"
#include "sheafnn/io/matrix_market.hpp"
#include "sheafnn/io/node_maps_file.hpp"
#include "sheafnn/io/npz.hpp"
#include "sheafnn/io/ogb.hpp"
#include "sheafnn/io/ogb_folder.hpp"
#include "sheafnn/io/safetensors.hpp"
#include "sheafnn/io/saved_names.hpp"
#include "sheafnn/io/sheaf_file.hpp"
#include "sheafnn/io/sheaf_use_text.hpp"
#include "sheafnn/io/text_dataset.hpp"
#include "sheafnn/io/training_state.hpp"
