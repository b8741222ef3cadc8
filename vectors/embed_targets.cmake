# cmake -DOUTPUT=FILE.cpp -DFILES=A.toml;B.toml -P embed_targets.cmake: writes a source file with the bytes of each file.
set(arrays "")
set(rows "")
foreach(file IN LISTS FILES)
  cmake_path(GET file STEM name)
  file(READ "${file}" bytes HEX)
  if(bytes STREQUAL "")
    message(FATAL_ERROR "${file} is empty")
  endif()
  string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  string(MAKE_C_IDENTIFIER "text_of_${name}" identifier)
  string(APPEND arrays "constexpr char ${identifier}[] = {\n    ${bytes}};\n")
  string(APPEND rows "    {\"${name}\", {${identifier}, sizeof ${identifier}}},\n")
endforeach()
list(LENGTH FILES count)
file(WRITE "${OUTPUT}" "// Written by vectors/embed_targets.cmake.
#include \"vectors/embedded_targets.hpp\"

namespace bitwitness {
namespace {

${arrays}
constexpr EmbeddedTarget targets[] = {
${rows}};

}  // namespace

std::span<const EmbeddedTarget> embedded_targets() {
  return targets;
}

}  // namespace bitwitness
")
