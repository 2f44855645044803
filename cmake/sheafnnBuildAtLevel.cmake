# Builds a target in the build of a level (sheafnnLevels.cmake), one at a time.
# usage: cmake -DSOURCE=FOLDER -DBUILD=FOLDER -DGENERATOR=NAME -DSETTINGS=FILE -DTARGET=NAME -P sheafnnBuildAtLevel.cmake
cmake_minimum_required(VERSION 3.21)
cmake_path(GET BUILD PARENT_PATH folder)
file(LOCK ${folder}/levels.lock GUARD PROCESS)
set(configured ${BUILD}/configured)
if(NOT EXISTS ${configured} OR ${SETTINGS} IS_NEWER_THAN ${configured})
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${BUILD} -G ${GENERATOR} -C ${SETTINGS} COMMAND_ERROR_IS_FATAL ANY)
  file(TOUCH ${configured})
endif()
execute_process(COMMAND ${CMAKE_COMMAND} --build ${BUILD} --target ${TARGET} COMMAND_ERROR_IS_FATAL ANY)
