#pragma once
#include "harness/value_rows.hpp"

namespace bitwitness {

/// Sorts rows as integers and drops repeated ones. Takes further memory meanwhile: as much as the rows have for values
/// of up to 16 bytes, 16 bytes a row beyond.
void sort_distinct(ValueRows& rows);

}  // namespace bitwitness
