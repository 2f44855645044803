# The extension module once for each level of SHEAFNN_CPU_LEVELS, in folders of the levels' names; sheafnn/_level.py chooses one at
# import. Each level has a build of its own, so that no inline function of one level is linked into another.
if(SHEAFNN_CUDA)
  message(FATAL_ERROR "sheafnn: SHEAFNN_CPU_LEVELS: ${SHEAFNN_CPU_LEVELS} together with SHEAFNN_CUDA=ON is not supported; "
                      "leave one of them out")
endif()

include(CheckCXXSourceCompiles)
check_cxx_source_compiles("int main() { return __builtin_cpu_supports(\"x86-64-v4\"); }" SHEAFNN_HAS_LEVELS)
if(NOT SHEAFNN_HAS_LEVELS)
  message(FATAL_ERROR "sheafnn: SHEAFNN_CPU_LEVELS: ${CMAKE_CXX_COMPILER} ${CMAKE_CXX_COMPILER_VERSION} has no "
                      "__builtin_cpu_supports(\"x86-64-v4\"); g++ 12 has it")
endif()
Python_add_library(_processor MODULE src/processor.cpp)
set_target_properties(_processor PROPERTIES SUFFIX .abi3.so CXX_EXTENSIONS OFF)
# It calls nothing of the C library; auditwheel wants to know which one a module is for.
target_link_options(_processor PRIVATE -Wl,--no-as-needed)
install(TARGETS _processor LIBRARY DESTINATION sheafnn)

# The builds have this one's settings.
set(settings "")
get_cmake_property(variables CACHE_VARIABLES)
foreach(variable IN LISTS variables)
  get_property(type CACHE ${variable} PROPERTY TYPE)
  if(type MATCHES "^(BOOL|PATH|FILEPATH|STRING|UNINITIALIZED)$" AND NOT variable MATCHES "^SHEAFNN_CPU_LEVELS?$")
    string(REPLACE UNINITIALIZED STRING type ${type})
    get_property(value CACHE ${variable} PROPERTY VALUE)
    string(APPEND settings "set(${variable} [===[${value}]===] CACHE ${type} \"\" FORCE)\n")
  endif()
endforeach()
set(settings_file ${CMAKE_CURRENT_BINARY_DIR}/settings.cmake)
file(CONFIGURE OUTPUT ${settings_file} CONTENT "@settings@" @ONLY)

set(previous "")
foreach(level IN LISTS sheafnn_cpu_levels)  # the lowest first
  if(NOT level IN_LIST SHEAFNN_CPU_LEVELS)
    continue()
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/levels/${level})
  add_custom_target(sheafnn_${level} ALL
    COMMAND ${CMAKE_COMMAND} -S ${PROJECT_SOURCE_DIR} -B ${CMAKE_CURRENT_BINARY_DIR}/build-${level} -G ${CMAKE_GENERATOR}
            -C ${settings_file} -DSHEAFNN_CPU_LEVEL=${level} -DCMAKE_LIBRARY_OUTPUT_DIRECTORY=${folder}
    COMMAND ${CMAKE_COMMAND} --build ${CMAKE_CURRENT_BINARY_DIR}/build-${level} --target _core
    USES_TERMINAL VERBATIM)
  if(previous)
    add_dependencies(sheafnn_${level} ${previous})
  else()
    sheafnn_stubs(${folder} sheafnn_${level})
  endif()
  set(previous sheafnn_${level})
  install(DIRECTORY ${folder}/ DESTINATION sheafnn/${level} USE_SOURCE_PERMISSIONS)
endforeach()
