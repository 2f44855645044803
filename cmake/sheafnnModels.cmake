# Models that programs choose at run time: a family of maps and a stalk dimension each, named FAMILY_D, and FlowFAMILY_D
# in continuous time. Each is made from one template and compiled once, whichever programs contain it.
set(sheafnn_all_models "")
foreach(d RANGE 1 5)
  foreach(family Identity Diagonal SpecialOrthogonal GeneralLinear)
    list(APPEND sheafnn_all_models ${family}_${d})
  endforeach()
endforeach()
set(sheafnn_pair_models ${sheafnn_all_models})  # with maps per incident pair
foreach(d RANGE 2 5)
  list(APPEND sheafnn_all_models Cooperative_${d})
endforeach()
set(sheafnn_batch_models ${sheafnn_all_models})  # those that the batch engine knows
# In continuous time: all can be chosen, a part is built unless it is said.
set(sheafnn_usual_models ${sheafnn_all_models})
foreach(model IN LISTS sheafnn_pair_models)
  list(APPEND sheafnn_all_models Flow${model})
  if(NOT model MATCHES "^Identity|_[15]$")
    list(APPEND sheafnn_usual_models Flow${model})
  endif()
endforeach()
set(SHEAFNN_EXAMPLE_MODELS "${sheafnn_usual_models}" CACHE STRING
    "Models the programs contain, as FAMILY:D or FAMILY_D")
string(REPLACE ":" "_" SHEAFNN_EXAMPLE_MODELS "${SHEAFNN_EXAMPLE_MODELS}")

# usage: sheafnn_check_models(VARIABLE CHOICE): it lists models, and only such as the variable CHOICE does
function(sheafnn_check_models variable choice)
  if(NOT ${variable})
    message(FATAL_ERROR "sheafnn: ${variable}: empty; choose from ${${choice}}")
  endif()
  foreach(model IN LISTS ${variable})
    if(NOT model IN_LIST ${choice})
      message(FATAL_ERROR "sheafnn: ${variable}: no model ${model}; choose from ${${choice}}")
    endif()
  endforeach()
endfunction()
sheafnn_check_models(SHEAFNN_EXAMPLE_MODELS sheafnn_all_models)

# usage: sheafnn_model_objects(NAME SOURCE...): an object library that is compiled as a part of a model
function(sheafnn_model_objects name)
  add_library(${name} OBJECT ${ARGN})
  sheafnn_own_target(${name})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/examples)
  target_link_libraries(${name} PUBLIC sheafnn::sheafnn sheafnn::io)
endfunction()

# Four models take up to 2.2 GB of memory to compile: Ninja starts no more of them than there is memory for.
cmake_host_system_information(RESULT memory_mb QUERY TOTAL_PHYSICAL_MEMORY)
math(EXPR compilers "${memory_mb} / 2500 + 1")
set_property(GLOBAL APPEND PROPERTY JOB_POOLS sheafnn_models=${compilers})

# usage: sheafnn_model_types(MODEL): FAMILY, D, NETWORK_HEADER, BAYESIAN_MODEL, DETERMINISTIC_MODEL and MAPS_NAME, for the
# templates in examples/models
macro(sheafnn_model_types model)
  string(REGEX MATCH "^(.*)_(.*)$" matched ${model})
  set(FAMILY ${CMAKE_MATCH_1})
  set(D ${CMAKE_MATCH_2})
  set(NETWORK_HEADER sheafnn/bsnn/network.hpp)
  if(FAMILY STREQUAL "Cooperative")
    set(NETWORK_HEADER sheafnn/bsnn/cooperative_network.hpp)
    set(BAYESIAN_MODEL Bcsnn<${D}>)
    set(DETERMINISTIC_MODEL Csnn<${D}>)
    set(MAPS_NAME cooperative_maps)
  elseif(FAMILY MATCHES "^Flow(.*)$")
    set(NETWORK_HEADER sheafnn/flow.hpp)
    set(BAYESIAN_MODEL "BayesianSheafFlow<sheafnn::${CMAKE_MATCH_1}<${D}>>")
    set(DETERMINISTIC_MODEL "SheafFlow<sheafnn::${CMAKE_MATCH_1}<${D}>>")
    set(MAPS_NAME sheafnn::${CMAKE_MATCH_1}<${D}>::name)
  else()
    set(BAYESIAN_MODEL "Bsnn<sheafnn::${FAMILY}<${D}>>")
    set(DETERMINISTIC_MODEL "Nsd<sheafnn::${FAMILY}<${D}>>")
    set(MAPS_NAME sheafnn::${FAMILY}<${D}>::name)
  endif()
endmacro()

# usage: sheafnn_model_library(TARGET MODEL...): a library of these models and of what all models share. Four models are
# one translation unit, which takes six tenths of the compiler's time that they take one by one.
function(sheafnn_model_library target)
  set(parts sheafnn_shared_by_models)
  if(NOT TARGET sheafnn_shared_by_models)
    sheafnn_model_objects(sheafnn_shared_by_models ${PROJECT_SOURCE_DIR}/examples/models/shared.cpp)
  endif()
  set(new_models "")
  foreach(model IN LISTS ARGN)
    get_property(objects GLOBAL PROPERTY sheafnn_objects_of_${model})
    if(NOT objects)
      sheafnn_model_types(${model})
      configure_file(${PROJECT_SOURCE_DIR}/examples/models/instantiate.cpp.in ${PROJECT_BINARY_DIR}/models/${model}.cpp
                     @ONLY)
      list(APPEND new_models ${model})
    endif()
  endforeach()
  while(new_models)
    list(SUBLIST new_models 0 4 group)
    list(REMOVE_ITEM new_models ${group})
    list(GET group 0 first_model)
    set(objects sheafnn_models_from_${first_model})
    list(TRANSFORM group REPLACE "(.+)" "${PROJECT_BINARY_DIR}/models/\\1.cpp" OUTPUT_VARIABLE files)
    sheafnn_model_objects(${objects} ${files})
    set_target_properties(${objects} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0
                                                JOB_POOL_COMPILE sheafnn_models)
    foreach(model IN LISTS group)
      set_property(GLOBAL PROPERTY sheafnn_objects_of_${model} ${objects})
    endforeach()
  endwhile()
  foreach(model IN LISTS ARGN)
    get_property(objects GLOBAL PROPERTY sheafnn_objects_of_${model})
    list(APPEND parts ${objects})
  endforeach()
  list(REMOVE_DUPLICATES parts)
  list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")
  add_library(${target} STATIC ${parts})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/examples)
  target_link_libraries(${target} PUBLIC sheafnn::sheafnn sheafnn::io)
endfunction()

# usage: sheafnn_model_registry(TARGET MODEL...): compiles find_model() of models/registry.hpp into it, for these models
function(sheafnn_model_registry target)
  list(JOIN ARGN ", " model_list)
  list(TRANSFORM ARGN PREPEND "&" OUTPUT_VARIABLE model_addresses)
  list(JOIN model_addresses ", " model_addresses)
  set(file ${PROJECT_BINARY_DIR}/models/${target}_registry.cpp)
  configure_file(${PROJECT_SOURCE_DIR}/examples/models/registry.cpp.in ${file} @ONLY)
  target_sources(${target} PRIVATE ${file})
endfunction()

# usage: sheafnn_build_commit(TARGET): compiles build_commit() of models/machine.hpp into it
function(sheafnn_build_commit target)
  set(commit unknown)
  find_package(Git QUIET)
  if(GIT_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
    execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(commit STREQUAL "")  # git refuses a repository of another user
      set(commit unknown)
    endif()
    if(EXISTS ${PROJECT_SOURCE_DIR}/.git/logs/HEAD)  # changes with every commit
      set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
                   ${PROJECT_SOURCE_DIR}/.git/logs/HEAD)
    endif()
  endif()
  configure_file(${PROJECT_SOURCE_DIR}/examples/models/build_commit.cpp.in ${PROJECT_BINARY_DIR}/models/build_commit.cpp @ONLY)
  target_sources(${target} PRIVATE ${PROJECT_BINARY_DIR}/models/build_commit.cpp)
endfunction()

# The same models for CUDA devices, in a shared library that shows one function only: what nvcc makes of Eigen must not
# meet what the C++ compiler makes of it.
# usage: sheafnn_device_models(TARGET CUDA_TARGET EXTENSION MODEL...): the library; EXTENSION ends the names of its sources.
function(sheafnn_device_models target cuda_target extension)
  set(files "")
  set(entries "")
  foreach(model IN LISTS ARGN)
    sheafnn_model_types(${model})
    set(file ${CMAKE_CURRENT_BINARY_DIR}/models/${model}_device.${extension})
    configure_file(${PROJECT_SOURCE_DIR}/examples/models/instantiate.cu.in ${file} @ONLY)
    list(APPEND files ${file})
    list(APPEND entries ${model}_cuda)
  endforeach()
  list(JOIN entries ", " device_entry_list)
  list(TRANSFORM entries PREPEND "&")
  list(JOIN entries ", " device_entry_addresses)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/models/device_registry.cpp)
  configure_file(${PROJECT_SOURCE_DIR}/examples/models/device_registry.cpp.in ${file} @ONLY)
  add_library(${target} SHARED ${files} ${file})
  set_target_properties(${target} PROPERTIES
    CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON CXX_EXTENSIONS OFF
    UNITY_BUILD OFF)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/examples)
  target_link_libraries(${target} PRIVATE ${cuda_target} sheafnn::io)
endfunction()
if(TARGET sheafnn::cuda AND (SHEAFNN_BUILD_EXAMPLES OR SHEAFNN_PYTHON))
  set(SHEAFNN_DEVICE_MODELS "${sheafnn_batch_models}" CACHE STRING "Models the programs and the Python package train on CUDA devices, as FAMILY_D")
  sheafnn_check_models(SHEAFNN_DEVICE_MODELS sheafnn_batch_models)
  sheafnn_device_models(sheafnn_device_models sheafnn::cuda cu ${SHEAFNN_DEVICE_MODELS})
  set(sheafnn_device_models sheafnn_device_models)  # what programs with --device are linked with
else()
  sheafnn_model_objects(sheafnn_no_device_models ${PROJECT_SOURCE_DIR}/examples/models/no_device_models.cpp)
  set(sheafnn_device_models $<TARGET_OBJECTS:sheafnn_no_device_models>)
endif()
