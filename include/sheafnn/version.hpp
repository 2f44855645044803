/// \file
/// Version of the library.
#pragma once

#define SHEAFNN_VERSION_MAJOR 0
#define SHEAFNN_VERSION_MINOR 1
#define SHEAFNN_VERSION_PATCH 0
#define SHEAFNN_VERSION_STRING "0.1.0"
