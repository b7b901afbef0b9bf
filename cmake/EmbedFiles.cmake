# anyslot_embed_files(TARGET FOLDER)
# Compiles the files of FOLDER into TARGET, as the table that server/page_files.h declares. The source that defines it is
# written by this file, run as a script:  cmake -DFOLDER=... -DOUTPUT=... -P EmbedFiles.cmake
cmake_minimum_required(VERSION 3.25)

function(anyslot_embed_files target folder)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${folder}/*)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/page_files.cc)
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${folder} -DOUTPUT=${source} -P ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
    DEPENDS ${files} ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
    COMMENT "Embedding ${folder}"
    VERBATIM)
  target_sources(${target} PRIVATE ${source})
endfunction()

# The bytes of a file as the elements of an array of char.
function(read_as_chars file result)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" lines "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," chars "${lines}")
  set(${result} "${chars}" PARENT_SCOPE)
endfunction()

function(write_page_files folder output)
  file(GLOB_RECURSE files RELATIVE ${folder} ${folder}/*)
  list(SORT files)
  set(arrays)
  set(rows)
  set(number 0)
  foreach(file ${files})
    read_as_chars(${folder}/${file} chars)
    file(SHA256 ${folder}/${file} digest)
    string(SUBSTRING ${digest} 0 32 digest)
    string(APPEND arrays "constexpr char kFile${number}[] = {\n${chars}};\n")
    string(APPEND rows "    {\"${file}\", \"${digest}\", {kFile${number}, sizeof kFile${number}}},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  file(
    WRITE ${output}
    "// Written by cmake/EmbedFiles.cmake.
#include \"server/page_files.h\"

namespace anyslot::server {

namespace {

${arrays}
constexpr PageFile kFiles[] = {
${rows}};

}  // namespace

std::span<const PageFile> page_files() { return kFiles; }

}  // namespace anyslot::server
")
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  write_page_files(${FOLDER} ${OUTPUT})
endif()
