# sheafnn::sheafnn (the library) and sheafnn::io (files), both header-only, under the names an installed copy has.

# Eigen's version file accepts only its own major version, hence the check afterwards; 5.x follows 3.4. Where a project
# brings Eigen itself (FetchContent, a find module of its own), there may be no version.
find_package(Eigen3 REQUIRED)
if(Eigen3_VERSION AND Eigen3_VERSION VERSION_LESS 3.4)
  message(FATAL_ERROR "sheafnn: Eigen ${Eigen3_VERSION} in ${Eigen3_DIR} is too old; 3.4 or later is needed")
endif()
find_package(Boost REQUIRED)  # headers only: Boost.Math, Boost.Odeint for sheafnn/flow.hpp
find_package(Threads REQUIRED)
find_package(ZLIB QUIET)
find_package(nlohmann_json QUIET)

add_library(sheafnn INTERFACE)
add_library(sheafnn::sheafnn ALIAS sheafnn)
target_compile_features(sheafnn INTERFACE cxx_std_20)
target_include_directories(sheafnn INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(sheafnn INTERFACE Eigen3::Eigen Boost::headers Threads::Threads)

# OpenMP is the choice of whoever compiles the headers: an installed copy looks for it anew (sheafnnConfig.cmake).
if(SHEAFNN_OPENMP)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  target_link_libraries(sheafnn INTERFACE $<BUILD_INTERFACE:OpenMP::OpenMP_CXX>)
  target_compile_definitions(sheafnn INTERFACE $<BUILD_INTERFACE:SHEAFNN_USE_OPENMP>)
endif()

if(ZLIB_FOUND AND nlohmann_json_FOUND)
  add_library(sheafnn_io INTERFACE)
  add_library(sheafnn::io ALIAS sheafnn_io)
  set_target_properties(sheafnn_io PROPERTIES EXPORT_NAME io)
  target_link_libraries(sheafnn_io INTERFACE sheafnn ZLIB::ZLIB nlohmann_json::nlohmann_json)
else()
  set(missing "")
  if(NOT ZLIB_FOUND)
    list(APPEND missing "zlib (Debian: zlib1g-dev)")
  endif()
  if(NOT nlohmann_json_FOUND)
    list(APPEND missing "nlohmann-json (Debian: nlohmann-json3-dev)")
  endif()
  list(JOIN missing " and " missing)
  message(STATUS "sheafnn: no target sheafnn::io (reading data sets, saving models): ${missing} not found")
endif()

# Training on CUDA devices, for projects that compile .cu files.
if(SHEAFNN_CUDA)
  find_package(CUDAToolkit REQUIRED)
  add_library(sheafnn_cuda INTERFACE)
  add_library(sheafnn::cuda ALIAS sheafnn_cuda)
  set_target_properties(sheafnn_cuda PROPERTIES EXPORT_NAME cuda)
  target_link_libraries(sheafnn_cuda INTERFACE sheafnn CUDA::cudart CUDA::cublas)
  # A CMake older than the toolkit does not know its language standards.
  target_compile_options(sheafnn_cuda INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>
    $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>)
endif()

# Training on several computers.
if(SHEAFNN_MPI)
  set(MPI_CXX_SKIP_MPICXX TRUE)  # the C interface
  find_package(MPI QUIET COMPONENTS CXX)
  list(APPEND CMAKE_MODULE_PATH ${PROJECT_SOURCE_DIR}/cmake)
  find_package(METIS QUIET)
  set(missing "")
  if(NOT MPI_CXX_FOUND)
    list(APPEND missing "MPI (Debian: libopenmpi-dev, openmpi-bin)")
  elseif(MPI_CXX_VERSION VERSION_LESS 3)
    list(APPEND missing "MPI 3 (the one found is ${MPI_CXX_VERSION})")
  endif()
  if(NOT METIS_FOUND)
    list(APPEND missing "METIS (Debian: libmetis-dev)")
  endif()
  if(missing)
    list(JOIN missing " and " missing)
    message(FATAL_ERROR "sheafnn: SHEAFNN_MPI needs ${missing}; not found. bash scripts/install_dependencies.sh --mpi "
                        "installs both, -DSHEAFNN_MPI=OFF does without")
  endif()
  add_library(sheafnn_mpi INTERFACE)
  add_library(sheafnn::mpi ALIAS sheafnn_mpi)
  set_target_properties(sheafnn_mpi PROPERTIES EXPORT_NAME mpi)
  target_link_libraries(sheafnn_mpi INTERFACE sheafnn MPI::MPI_CXX METIS::METIS)
endif()
