# cmake -DOUTPUT=FILE.cpp -DCODE_32=A.bin -DCODE_64=B.bin -P embed_runtime.cmake: writes a source file with both.
foreach(width IN ITEMS 32 64)
  file(READ "${CODE_${width}}" bytes HEX)
  string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes_${width} "${bytes}")
endforeach()
file(WRITE "${OUTPUT}" "// Written by harness/runtime/embed_runtime.cmake.
#include \"harness/guest_runtime.hpp\"

namespace bitwitness {
namespace {

constexpr unsigned char code_32[] = {
    ${bytes_32}};
constexpr unsigned char code_64[] = {
    ${bytes_64}};

}  // namespace

std::span<const std::byte> embedded_runtime(bool is_64_bit) {
  return std::as_bytes(is_64_bit ? std::span<const unsigned char>(code_64) : std::span<const unsigned char>(code_32));
}

}  // namespace bitwitness
")
