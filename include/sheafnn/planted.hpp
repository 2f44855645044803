/// \file
/// Tasks with a planted sheaf, which a network has to learn: local frames, unreliable relations, a sphere, signs, diagonal and
/// general linear maps. docs/data.md, "Planted sheaves".
#pragma once

#include "sheafnn/sheaf/planted.hpp"
#include "sheafnn/sheaf/planted_by_name.hpp"
#include "sheafnn/sheaf/planted_geometric.hpp"
#include "sheafnn/sheaf/planted_options.hpp"
#include "sheafnn/sheaf/planted_task.hpp"
