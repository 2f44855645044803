# Builds at the levels of SHEAFNN_CPU_LEVELS for programs or modules that choose one when they start. Each level has a build of its own,
# so that no inline function of one level is linked into another.
include_guard(GLOBAL)

if(SHEAFNN_CUDA)
  message(FATAL_ERROR "sheafnn: SHEAFNN_CPU_LEVELS: ${SHEAFNN_CPU_LEVELS} together with SHEAFNN_CUDA=ON is not supported; "
                      "leave one of them out")
endif()
if(NOT SHEAFNN_HAS_LEVELS)
  message(FATAL_ERROR "sheafnn: SHEAFNN_CPU_LEVELS: ${CMAKE_CXX_COMPILER} ${CMAKE_CXX_COMPILER_VERSION} has no "
                      "__builtin_cpu_supports(\"x86-64-v4\"); g++ 12 has it")
endif()

# usage: sheafnn_level_settings(LEVEL VARIABLE=VALUE...): settings of the build of a level, which are this build's settings and these
function(sheafnn_level_settings level)
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
  foreach(setting IN ITEMS SHEAFNN_CPU_LEVEL=${level} ${ARGN})
    string(REGEX REPLACE "^([^=]*)=(.*)$" "set(\\1 [===[\\2]===] CACHE STRING \"\" FORCE)\n" line "${setting}")
    string(APPEND settings "${line}")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/settings-${level}.cmake CONTENT "@settings@" @ONLY)
endfunction()

# usage: sheafnn_build_at_level(NAME LEVEL TARGET): the target NAME builds TARGET in the build of a level, after its settings
function(sheafnn_build_at_level name level target)
  add_custom_target(${name} ALL
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DBUILD=${CMAKE_CURRENT_BINARY_DIR}/build-${level}
            -DGENERATOR=${CMAKE_GENERATOR} -DSETTINGS=${CMAKE_CURRENT_BINARY_DIR}/settings-${level}.cmake -DTARGET=${target}
            -P ${PROJECT_SOURCE_DIR}/cmake/sheafnnBuildAtLevel.cmake
    USES_TERMINAL VERBATIM)
endfunction()
