# The extension module once for each level of SHEAFNN_CPU_LEVELS, in folders of the levels' names; sheafnn/_level.py chooses one at
# import.
include(${PROJECT_SOURCE_DIR}/cmake/sheafnnLevels.cmake)

Python_add_library(_processor MODULE src/processor.cpp)
target_include_directories(_processor PRIVATE ${PROJECT_SOURCE_DIR}/examples)
set_target_properties(_processor PROPERTIES SUFFIX .abi3.so CXX_EXTENSIONS OFF)
# It calls nothing of the C library; auditwheel wants to know which one a module is for.
target_link_options(_processor PRIVATE -Wl,--no-as-needed)
install(TARGETS _processor LIBRARY DESTINATION sheafnn)

set(stubs FALSE)
foreach(level IN LISTS sheafnn_cpu_levels)
  if(NOT level IN_LIST SHEAFNN_CPU_LEVELS)
    continue()
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/levels/${level})
  set(flags "${CMAKE_CXX_FLAGS_RELEASE}")
  if(level STREQUAL x86-64)  # of the fewest processors the largest module: a sixth smaller, and a tenth slower
    string(REPLACE -O3 -O2 flags "${flags}")
  endif()
  sheafnn_level_settings(${level} CMAKE_LIBRARY_OUTPUT_DIRECTORY=${folder} "CMAKE_CXX_FLAGS_RELEASE=${flags}")
  sheafnn_build_at_level(sheafnn_${level} ${level} _core)
  if(NOT stubs)
    sheafnn_stubs(${folder} sheafnn_${level})
    set(stubs TRUE)
  endif()
  install(DIRECTORY ${folder}/ DESTINATION sheafnn/${level} USE_SOURCE_PERMISSIONS)
endforeach()
