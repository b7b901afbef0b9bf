# Everything comes from the distribution's packages (scripts/install-deps.sh names them).
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(dnnl REQUIRED)
find_package(OpenMP REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(prometheus-cpp REQUIRED)
find_package(spdlog REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
if(ANYSLOT_TESTS)
  find_package(GTest REQUIRED)
endif()

# minja (chat templates) is header-only and packaged by newer releases only: the target minja::minja is there when
# its headers are.
find_path(
  minja_include_dir minja/minja.hpp
  HINTS ${ANYSLOT_MINJA_DIR} ${ANYSLOT_MINJA_DIR}/include ${PROJECT_SOURCE_DIR}/build/minja/usr/include
  NO_CACHE)
if(minja_include_dir)
  message(STATUS "minja: found in ${minja_include_dir}")
  add_library(minja::minja INTERFACE IMPORTED)
  target_include_directories(minja::minja SYSTEM INTERFACE ${minja_include_dir})
  target_link_libraries(minja::minja INTERFACE nlohmann_json::nlohmann_json)
elseif(ANYSLOT_MINJA_DIR)
  message(FATAL_ERROR "ANYSLOT_MINJA_DIR=${ANYSLOT_MINJA_DIR} holds no minja/minja.hpp")
else()
  message(STATUS "minja: not found, built without it (get it: scripts/fetch-minja.sh, or -DANYSLOT_MINJA_DIR=DIR)")
endif()
