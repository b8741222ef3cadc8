# cmake -DOUTPUT=FILE.cpp -DPROGRAM=FILE -P embed_host.cmake: writes a source file with the program in it.
file(READ "${PROGRAM}" bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE "${OUTPUT}" "// Written by harness/plugins/embed_host.cmake.
#include \"harness/plugins/spawner.hpp\"

namespace bitwitness::plugins {
namespace {

constexpr unsigned char program[] = {
    ${bytes}};

}  // namespace

std::span<const std::byte> embedded_host() { return std::as_bytes(std::span<const unsigned char>(program)); }

}  // namespace bitwitness::plugins
")
