#pragma once
#include <stdexcept>

namespace bitwitness {

/// Reports input that cannot be used: a file, an address, an option. `what()` is one line that names it.
/// How the run of a routine ended is never an Error but a value (see Outcome in machine.hpp).
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace bitwitness
