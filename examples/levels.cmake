# The programs once for each level of SHEAFNN_CPU_LEVELS, in folders of the levels' names beside programs that choose one when they start
# (levels/launch.cpp).
include(${PROJECT_SOURCE_DIR}/cmake/sheafnnLevels.cmake)

add_library(sheafnn_launch OBJECT levels/launch.cpp)
set_target_properties(sheafnn_launch PROPERTIES CXX_EXTENSIONS OFF)
target_compile_features(sheafnn_launch PRIVATE cxx_std_20)
list(TRANSFORM sheafnn_cpu_levels REPLACE "(.+)" "\"\\1\"" OUTPUT_VARIABLE names)
list(JOIN names "," names)
target_compile_definitions(sheafnn_launch PRIVATE "SHEAFNN_CPU_LEVEL_NAMES=${names}")
set(folder ${PROJECT_BINARY_DIR}/examples)
foreach(program IN LISTS sheafnn_programs)
  add_executable(${program} $<TARGET_OBJECTS:sheafnn_launch>)
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${folder} LINKER_LANGUAGE CXX)
endforeach()
foreach(level IN LISTS SHEAFNN_CPU_LEVELS)
  sheafnn_level_settings(${level} SHEAFNN_PROGRAM_FOLDER=${folder}/${level} SHEAFNN_BUILD_TESTS=OFF SHEAFNN_BUILD_BENCHMARKS=OFF
                         SHEAFNN_INSTALL=OFF SHEAFNN_PYTHON=OFF)
  foreach(program IN LISTS sheafnn_programs)
    sheafnn_build_at_level(${program}_${level} ${level} ${program})
    add_dependencies(${program} ${program}_${level})
  endforeach()
endforeach()
