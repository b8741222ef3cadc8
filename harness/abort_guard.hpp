#pragma once
#include <functional>

namespace bitwitness {

/// Does some work of a C library on this thread. Returns false when the library called abort() meanwhile, which then
/// does not end the program: what the library was working on must not be touched again, and what it held is lost. The
/// work must leave no destructor undone.
bool survives_abort(const std::function<void()>& work);

}  // namespace bitwitness
