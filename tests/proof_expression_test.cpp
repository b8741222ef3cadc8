#include "tests/catch.hpp"
TEST_CASE("x") {
  CHECK(true);
}
