# cmake -DBUILD=B -DCONFIG=C -DWORK=W -P check.cmake: installs a build into an empty prefix, builds the consumer against
# it and runs both it and the installed program, on the installed model.
file(REMOVE_RECURSE ${WORK})

macro(run what)
  message(STATUS "${what}")
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what} failed: ${result}")
  endif()
endmacro()

run("install" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix --config ${CONFIG})
run("configure the consumer" ${CMAKE_COMMAND} -G Ninja -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/build
    -DCMAKE_BUILD_TYPE=${CONFIG} -DCMAKE_PREFIX_PATH=${WORK}/prefix)
run("build the consumer" ${CMAKE_COMMAND} --build ${WORK}/build)
run("run the consumer" ${WORK}/build/consumer ${WORK}/prefix/share/anyslot/models/rag-demo-14m)
run("ask the installed program, which runs the model it finds beside it" ${WORK}/prefix/bin/anyslot doctor)
