# cmake -DPYTHON=P -DSCRIPT=S -DOUTPUT=O -DEXPECTED=E -P: fails unless the script writes the expected file again.
execute_process(COMMAND ${PYTHON} -B ${SCRIPT} ${OUTPUT} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${OUTPUT} ${EXPECTED} RESULT_VARIABLE differs)
if(differs)
  message(FATAL_ERROR "${SCRIPT} does not write ${EXPECTED} any more; compare it with ${OUTPUT}")
endif()
