# Settings of the project's own tests, examples and benchmarks. Nothing here reaches users of the library.
include(CheckCXXCompilerFlag)

# Levels of x86-64, the lowest first: every processor, SSE4.2, AVX2 and FMA, AVX-512. examples/levels/processor_levels.hpp asks for them.
set(sheafnn_cpu_levels x86-64 x86-64-v2 x86-64-v3 x86-64-v4)
set(SHEAFNN_CPU_LEVEL "" CACHE STRING "Compile for processors of this level, instead of this machine's: ${sheafnn_cpu_levels}")

# usage: sheafnn_check_levels(VARIABLE): it lists levels only, and the build is for x86-64
function(sheafnn_check_levels variable)
  foreach(level IN LISTS ${variable})
    if(NOT level IN_LIST sheafnn_cpu_levels)
      message(FATAL_ERROR "sheafnn: ${variable}: no level ${level}; choose from ${sheafnn_cpu_levels}")
    endif()
  endforeach()
  if(${variable} AND NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    message(FATAL_ERROR "sheafnn: ${variable}: ${${variable}} are levels of x86_64; this build is for ${CMAKE_SYSTEM_PROCESSOR}")
  endif()
endfunction()
sheafnn_check_levels(SHEAFNN_CPU_LEVEL)
set(SHEAFNN_CPU_LEVELS "" CACHE STRING "Compile programs and the Python module once for each of these levels, of which they choose one when they start: ${sheafnn_cpu_levels}; usual: three levels on x86-64 without CUDA; empty: once")
include(CheckCXXSourceCompiles)
if(SHEAFNN_CPU_LEVELS)
  check_cxx_source_compiles("int main() { return __builtin_cpu_supports(\"x86-64-v4\"); }" SHEAFNN_HAS_LEVELS)
endif()
if(SHEAFNN_CPU_LEVELS STREQUAL "usual")
  set(SHEAFNN_CPU_LEVELS "")
  if(SHEAFNN_HAS_LEVELS AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" AND NOT SHEAFNN_CUDA AND NOT SHEAFNN_CPU_LEVEL)
    set(SHEAFNN_CPU_LEVELS x86-64 x86-64-v3 x86-64-v4)
  endif()
endif()
sheafnn_check_levels(SHEAFNN_CPU_LEVELS)

set(sheafnn_built_for generic)
if(SHEAFNN_CPU_LEVEL)
  set(sheafnn_native_options -march=${SHEAFNN_CPU_LEVEL})
  set(sheafnn_built_for ${SHEAFNN_CPU_LEVEL})
elseif(SHEAFNN_NATIVE)
  check_cxx_compiler_flag(-march=native SHEAFNN_HAS_MARCH_NATIVE)
  if(SHEAFNN_HAS_MARCH_NATIVE)
    # The same two words mean another instruction set on another machine, which a compiler cache shared between
    # machines does not see: a fingerprint of the instruction set makes the command lines differ.
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native -dM -E -x c++ /dev/null OUTPUT_VARIABLE macros)
    string(SHA1 fingerprint "${macros}")
    string(SUBSTRING ${fingerprint} 0 8 fingerprint)
    set(sheafnn_native_options -march=native -DSHEAFNN_NATIVE_FINGERPRINT=0x${fingerprint})
    set(sheafnn_built_for native)
  endif()
endif()

# g++ collects its garbage later: a tenth less time, a quarter to a third more memory.
set(sheafnn_gxx_memory --param=ggc-min-expand=1000 --param=ggc-min-heapsize=1048576)

function(sheafnn_own_target target)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # What g++ does not call a conversion, and std::stable_sort of libstdc++, which uses what it says is deprecated.
    target_compile_options(${target} PRIVATE -Wno-sign-conversion -Wno-deprecated-declarations)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE ${sheafnn_gxx_memory})
  endif()
  target_compile_options(${target} PRIVATE ${sheafnn_native_options})
endfunction()

# usage: sheafnn_decompositions(TARGET SCOPE): adds what examples/models/decompositions.hpp declares, compiled once for all, to
# the sources of TARGET
function(sheafnn_decompositions target scope)
  if(NOT TARGET sheafnn_decompositions)
    add_library(sheafnn_decompositions OBJECT ${PROJECT_SOURCE_DIR}/examples/models/decompositions.cpp)
    sheafnn_own_target(sheafnn_decompositions)
    set_target_properties(sheafnn_decompositions PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_include_directories(sheafnn_decompositions PRIVATE ${PROJECT_SOURCE_DIR}/examples)
    target_link_libraries(sheafnn_decompositions PRIVATE sheafnn::sheafnn)
  endif()
  target_sources(${target} ${scope} $<TARGET_OBJECTS:sheafnn_decompositions>)
endfunction()
