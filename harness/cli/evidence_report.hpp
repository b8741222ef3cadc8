#pragma once
#include "decoders/evidence.hpp"

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace bitwitness::cli {

/// Writes evidence as the JSON object "evidence" of a census: every count, and per question "supported" with the name
/// of the reading, or null where it is undecided. Questions without a single key are left out.
nlohmann::ordered_json to_json(const decoders::EvidenceResult& evidence);

/// Writes evidence as tables, with one line per question that starts with "supported:", "refuted:" or "undecided:", and
/// "counted:" for what no seed claims. Questions without a single key are left out. Lines end with a newline.
std::string to_text(const decoders::EvidenceResult& evidence);

}  // namespace bitwitness::cli
