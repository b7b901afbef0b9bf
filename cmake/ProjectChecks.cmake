# Tests of what stands around the code: the include rules, the demo model's tools, the packages, clients, browsers.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

add_test(NAME include_rules COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/check-includes.py)
add_test(NAME include_rules_self_test COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/check-includes.py
                                              --self-test)

add_test(
  NAME demo_eval_reproduced
  COMMAND
    ${CMAKE_COMMAND} -DPYTHON=${Python3_EXECUTABLE}
    -DSCRIPT=${PROJECT_SOURCE_DIR}/tools/demo_model/make_eval.py
    -DOUTPUT=${PROJECT_BINARY_DIR}/tests/ragqa-dev.jsonl
    -DEXPECTED=${PROJECT_SOURCE_DIR}/tests/data/ragqa-dev.jsonl -P
    ${PROJECT_SOURCE_DIR}/cmake/CheckReproduced.cmake)

if(TARGET minja::minja)
  anyslot_test(minja_test SOURCES ${PROJECT_SOURCE_DIR}/cmake/minja_test.cc LIBS minja::minja)
endif()

# Clients that others wrote, against the served model; skipped where scripts/install-clients.sh has not run.
find_program(NODE_PROGRAM node)
if(NODE_PROGRAM)
  add_test(NAME clients COMMAND ${NODE_PROGRAM} ${PROJECT_SOURCE_DIR}/tests/clients/run.mjs $<TARGET_FILE:anyslot_cli>
                                ${PROJECT_SOURCE_DIR}/models/rag-demo-14m)
  set_tests_properties(clients PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)

  # Tokenizers and chat templates of real models against Hugging Face's own implementations.
  add_test(NAME tokenizers COMMAND ${NODE_PROGRAM} ${PROJECT_SOURCE_DIR}/tests/tokenizers/run.mjs $<TARGET_FILE:text_lines>)
  set_tests_properties(tokenizers PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77)
  if(TARGET minja::minja)
    set_tests_properties(tokenizers PROPERTIES ENVIRONMENT ANYSLOT_CHAT_TEMPLATES=1)
  endif()

  # Pages in a real Chromium; tests/browser/run.mjs says when they are skipped.
  foreach(page sweep_report)
    add_test(NAME browser_${page} COMMAND ${NODE_PROGRAM} ${PROJECT_SOURCE_DIR}/tests/browser/run.mjs ${page}
                                          $<TARGET_FILE:anyslot_cli> ${PROJECT_SOURCE_DIR}/models/rag-demo-14m)
    set_tests_properties(browser_${page} PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77 RUN_SERIAL ON)
  endforeach()

  # The page at /: its modules in Node.js, then the whole in Chromium, which leaves pictures in tests/page of the build.
  add_test(NAME page_modules COMMAND ${NODE_PROGRAM} ${PROJECT_SOURCE_DIR}/tests/page/run_modules.mjs)
  set_tests_properties(page_modules PROPERTIES SKIP_RETURN_CODE 77)
  foreach(part race cards errors looks)
    add_test(NAME browser_page_${part}
             COMMAND ${NODE_PROGRAM} ${PROJECT_SOURCE_DIR}/tests/browser/run.mjs ../page/${part}
                     $<TARGET_FILE:anyslot_cli> ${PROJECT_SOURCE_DIR}/models/rag-demo-14m)
    set_tests_properties(browser_page_${part} PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77 RUN_SERIAL ON
                                                         ENVIRONMENT ANYSLOT_SCREENSHOTS=${PROJECT_BINARY_DIR}/tests/page)
  endforeach()
endif()

# The sanitizers' flags are not exported, so a sanitized library cannot be linked from outside.
if(NOT ANYSLOT_SANITIZE)
  add_test(
    NAME package_consumer
    COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -DCONFIG=${CMAKE_BUILD_TYPE}
            -DWORK=${PROJECT_BINARY_DIR}/tests/consumer -P ${PROJECT_SOURCE_DIR}/tests/consumer/check.cmake)
  set_tests_properties(package_consumer PROPERTIES TIMEOUT 600)
endif()
