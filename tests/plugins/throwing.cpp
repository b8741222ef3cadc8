// A decoder that throws on 03 00 00 00 00 00, for plugin_test.
#include <cstdint>
#include <cstring>
#include <iostream>
#include <stdexcept>

extern "C" void throws(const std::uint8_t* packed, std::uint32_t* words) {
  if (packed[0] == 3) throw std::runtime_error("no such\nvalue");
  std::cout << "chatter" << std::endl;
  std::memset(words, 0, 16);
}

extern "C" void throws_number(const std::uint8_t* packed, std::uint32_t*) {
  if (packed[0] == 3) throw 7;
}
