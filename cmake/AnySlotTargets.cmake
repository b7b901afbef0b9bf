# One target per folder: its sources, the folders it may use, and the tests that stand beside the code.

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

add_library(anyslot_options INTERFACE)
# nvcc writes host code that -Wpedantic and -Wconversion complain about.
target_compile_options(anyslot_options 
  INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wno-sign-conversion>")
# g++ 12 takes "text" + std::to_string(n) for overlapping memory (GCC bug 105651).
target_compile_options(anyslot_options INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)
if(ANYSLOT_WARNINGS_AS_ERRORS)
  target_compile_options(anyslot_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
target_include_directories(anyslot_options INTERFACE ${PROJECT_SOURCE_DIR}/include
                                                     ${PROJECT_SOURCE_DIR}/src)
if(ANYSLOT_SANITIZE)
  target_compile_options(anyslot_options INTERFACE -fsanitize=${ANYSLOT_SANITIZE} -fno-sanitize-recover=all
                                                   -fno-omit-frame-pointer)
  target_link_options(anyslot_options INTERFACE -fsanitize=${ANYSLOT_SANITIZE})
endif()
if(ANYSLOT_FUZZ)
  target_compile_options(anyslot_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# What only calls the library compiles in half to two thirds of the time so; what takes time when it runs is the library.
set(anyslot_light_optimization $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)

# anyslot_folder(NAME SOURCES a.cc ... DEPS other_folder ... LIBS Package::target ...)
# The library anyslot_NAME, for the tests and for other folders; its objects also go into the library `anyslot`.
function(anyslot_folder name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  add_library(anyslot_${name} STATIC ${ARG_SOURCES})
  set_property(GLOBAL APPEND PROPERTY ANYSLOT_FOLDERS anyslot_${name})
  set_property(GLOBAL APPEND PROPERTY ANYSLOT_LIBS ${ARG_LIBS})
  target_link_libraries(anyslot_${name} PRIVATE anyslot_options)
  foreach(dep ${ARG_DEPS})
    target_link_libraries(anyslot_${name} PUBLIC anyslot_${dep})
  endforeach()
  target_link_libraries(anyslot_${name} PRIVATE ${ARG_LIBS})
endfunction()

# anyslot_library(HEADER_ONLY Package::target ...)
# The one library that users link and that is installed: `anyslot`, with the objects of every folder. Header-only packages
# are needed to build the folders, not to link them, so a user of the library need not have them.
function(anyslot_library)
  cmake_parse_arguments(ARG "" "" "HEADER_ONLY" ${ARGN})
  get_property(folders GLOBAL PROPERTY ANYSLOT_FOLDERS)
  get_property(libs GLOBAL PROPERTY ANYSLOT_LIBS)
  list(REMOVE_DUPLICATES libs)
  list(REMOVE_ITEM libs ${ARG_HEADER_ONLY})
  add_library(anyslot STATIC)
  add_library(AnySlot::anyslot ALIAS anyslot)
  foreach(folder ${folders})
    target_sources(anyslot PRIVATE $<TARGET_OBJECTS:${folder}>)
  endforeach()
  target_link_libraries(anyslot PRIVATE ${libs})
  target_compile_features(anyslot PUBLIC cxx_std_20)
  target_include_directories(anyslot PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  if(ANYSLOT_SANITIZE)
    target_link_options(anyslot PUBLIC $<BUILD_INTERFACE:-fsanitize=${ANYSLOT_SANITIZE}>)
  endif()
endfunction()

# anyslot_test(NAME SOURCES x_test.cc ... DEPS folder ... LIBS Package::target ... [TIMEOUT seconds] [LABELS label ...])
# One program, one ctest entry. ANYSLOT_MODEL_DIR is the bundled model; tests labelled e2e hold for any usable model and
# take theirs from ANYSLOT_TEST_MODEL_DIR.
function(anyslot_test name)
  if(NOT ANYSLOT_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_compile_options(${name} PRIVATE ${anyslot_light_optimization})
  target_link_libraries(${name} PRIVATE anyslot_options GTest::gtest GTest::gmock GTest::gtest_main
                                        ${ARG_LIBS})
  foreach(dep ${ARG_DEPS})
    target_link_libraries(${name} PRIVATE anyslot_${dep})
  endforeach()
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(
    ${name} PRIVATE ANYSLOT_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                    ANYSLOT_GOLDENS_DIR="${PROJECT_SOURCE_DIR}/tests/goldens"
                    ANYSLOT_MODEL_DIR="${PROJECT_SOURCE_DIR}/models/rag-demo-14m")
  if("e2e" IN_LIST ARG_LABELS)
    target_compile_definitions(${name} PRIVATE ANYSLOT_TEST_MODEL_DIR="${ANYSLOT_TEST_MODEL}")
  endif()
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(ANYSLOT_SANITIZE)
    math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
  if(ANYSLOT_SANITIZE MATCHES "thread")
    set_tests_properties(
      ${name} PROPERTIES ENVIRONMENT "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp")
  endif()
endfunction()
