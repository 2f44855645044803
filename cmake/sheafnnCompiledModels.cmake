# sheafnn::models: train(), predict() and their like of some models, compiled once (sheafnn/bsnn/compiled_models.hpp). A program
# that links it compiles in a third of the time, and in as much for twelve models as for one.
set(SHEAFNN_MODELS "" CACHE STRING
    "Models of sheafnn::models, Bsnn and Nsd of each: FAMILY_D;… (Diagonal, SpecialOrthogonal, GeneralLinear; D from 1 to 5), or usual")
set(models ${SHEAFNN_MODELS})
if(models STREQUAL "usual")
  set(models Diagonal_2 Diagonal_3 SpecialOrthogonal_2 SpecialOrthogonal_3 GeneralLinear_2 GeneralLinear_3)
endif()
if(NOT models)
  return()
endif()

include(cmake/sheafnnOwnTarget.cmake)
set(folder ${PROJECT_BINARY_DIR}/compiled_models)
set(list "// Written by CMake: SHEAFNN_MODELS.\n#pragma once\n\n#include \"sheafnn/bsnn/compiled_models.hpp\"\n\n")
set(sources ${folder}/register_width.cpp)
file(CONFIGURE OUTPUT ${folder}/register_width.cpp CONTENT [[
#include <sheafnn/bsnn/compiled_models.hpp>
namespace sheafnn::detail {
template <int RegisterBytes, bool OpenMp>
int compiled_models_for_registers_of() {
  return RegisterBytes;
}
template int compiled_models_for_registers_of<register_bytes, uses_openmp>();
}  // namespace sheafnn::detail
]] @ONLY)
foreach(model IN LISTS models)
  if(NOT model MATCHES "^(Diagonal|SpecialOrthogonal|GeneralLinear)[_:]([1-5])$")
    message(FATAL_ERROR "sheafnn: SHEAFNN_MODELS: no model ${model}; choose from Diagonal_D, SpecialOrthogonal_D, GeneralLinear_D "
                        "with D from 1 to 5, or usual alone")
  endif()
  set(type "${CMAKE_MATCH_1}<${CMAKE_MATCH_2}>")
  string(APPEND list "SHEAFNN_COMPILED_MODEL(extern template, ${type})\n")
  set(file ${folder}/${CMAKE_MATCH_1}_${CMAKE_MATCH_2}.cpp)
  file(CONFIGURE OUTPUT ${file} CONTENT
       "#include <sheafnn/bsnn/compiled_models.hpp>\n\nSHEAFNN_COMPILED_MODEL(template, ${type})\n" @ONLY)
  list(APPEND sources ${file})
endforeach()
file(CONFIGURE OUTPUT ${folder}/include/sheafnn/model_list.hpp CONTENT "${list}" @ONLY)

add_library(sheafnn_models STATIC ${sources})
add_library(sheafnn::models ALIAS sheafnn_models)
set_target_properties(sheafnn_models PROPERTIES EXPORT_NAME models POSITION_INDEPENDENT_CODE ON)
sheafnn_own_target(sheafnn_models)
target_link_libraries(sheafnn_models PUBLIC sheafnn)
target_compile_definitions(sheafnn_models INTERFACE SHEAFNN_COMPILED_MODELS)
target_compile_options(sheafnn_models INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${sheafnn_native_options}>")  # the same registers in programs
target_include_directories(sheafnn_models INTERFACE $<BUILD_INTERFACE:${folder}/include>)
if(SHEAFNN_INSTALL)
  install(FILES ${folder}/include/sheafnn/model_list.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sheafnn)
endif()
