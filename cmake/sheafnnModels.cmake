# Models that programs choose at run time: a family of maps and a stalk dimension each, named FAMILY_D. Each is made
# from one template and compiled once, whichever programs contain it.
set(sheafnn_all_models "")
foreach(family Identity Diagonal SpecialOrthogonal GeneralLinear)
  foreach(d RANGE 1 5)
    list(APPEND sheafnn_all_models ${family}_${d})
  endforeach()
endforeach()
set(SHEAFNN_EXAMPLE_MODELS "${sheafnn_all_models}" CACHE STRING
    "Models the programs contain, as FAMILY:D or FAMILY_D")
string(REPLACE ":" "_" SHEAFNN_EXAMPLE_MODELS "${SHEAFNN_EXAMPLE_MODELS}")

# usage: sheafnn_check_models(VARIABLE): it lists models, and only such as exist
function(sheafnn_check_models variable)
  if(NOT ${variable})
    message(FATAL_ERROR "sheafnn: ${variable}: empty; choose from ${sheafnn_all_models}")
  endif()
  foreach(model IN LISTS ${variable})
    if(NOT model IN_LIST sheafnn_all_models)
      message(FATAL_ERROR "sheafnn: ${variable}: no model ${model}; choose from ${sheafnn_all_models}")
    endif()
  endforeach()
endfunction()
sheafnn_check_models(SHEAFNN_EXAMPLE_MODELS)

# usage: sheafnn_model_objects(NAME SOURCE): an object library that is compiled as a part of a model
function(sheafnn_model_objects name source)
  add_library(${name} OBJECT ${source})
  sheafnn_own_target(${name})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/examples)
  target_link_libraries(${name} PUBLIC sheafnn::sheafnn sheafnn::io)
endfunction()

# usage: sheafnn_model_library(TARGET MODEL...): a library of these models and of what all models share
function(sheafnn_model_library target)
  set(parts sheafnn_shared_by_models)
  if(NOT TARGET sheafnn_shared_by_models)
    sheafnn_model_objects(sheafnn_shared_by_models ${PROJECT_SOURCE_DIR}/examples/models/shared.cpp)
  endif()
  foreach(model IN LISTS ARGN)
    if(NOT TARGET sheafnn_model_${model})
      string(REGEX MATCH "^(.*)_(.*)$" matched ${model})
      set(FAMILY ${CMAKE_MATCH_1})
      set(D ${CMAKE_MATCH_2})
      set(file ${PROJECT_BINARY_DIR}/models/${model}.cpp)
      configure_file(${PROJECT_SOURCE_DIR}/examples/models/instantiate.cpp.in ${file} @ONLY)
      sheafnn_model_objects(sheafnn_model_${model} ${file})
    endif()
    list(APPEND parts sheafnn_model_${model})
  endforeach()
  list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")
  add_library(${target} STATIC ${parts})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/examples)
  target_link_libraries(${target} PUBLIC sheafnn::sheafnn sheafnn::io)
endfunction()

# usage: sheafnn_build_commit(TARGET): compiles build_commit() of models/machine.hpp into it
function(sheafnn_build_commit target)
  set(commit unknown)
  find_package(Git QUIET)
  if(GIT_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
    execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(EXISTS ${PROJECT_SOURCE_DIR}/.git/logs/HEAD)  # changes with every commit
      set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
                   ${PROJECT_SOURCE_DIR}/.git/logs/HEAD)
    endif()
  endif()
  configure_file(${PROJECT_SOURCE_DIR}/examples/models/build_commit.cpp.in ${PROJECT_BINARY_DIR}/models/build_commit.cpp @ONLY)
  target_sources(${target} PRIVATE ${PROJECT_BINARY_DIR}/models/build_commit.cpp)
endfunction()
