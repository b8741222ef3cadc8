#include "harness/report_objects.hpp"

#include "harness/report_parts.hpp"
#include "harness/values.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bitwitness::report_objects {

nlohmann::ordered_json engine_json(const Engine& engine) {
  nlohmann::ordered_json out = {
      {"unicorn", engine.unicorn}, {"capstone", engine.capstone}, {"lief", engine.lief}, {"cpu", engine.cpu}};
  if (const auto& test = engine.self_test) {
    out["self_test"] = {{"vectors", test->vectors}, {"as_hardware", test->as_hardware}};
    out["quirks"] = test->quirks;
  }
  return out;
}

nlohmann::ordered_json image_json(std::string_view name, std::string_view sha256, ImageFormat format, bool stand_in) {
  return {{"name", name}, {"sha256", sha256}, {"format", to_string(format)}, {"stand_in", stand_in}};
}

nlohmann::ordered_json environment_json(const Environment& environment) {
  return {{"fpcw", fmt::format("{:04x}", environment.fpcw)}, {"mxcsr", fmt::format("{:04x}", environment.mxcsr)}};
}

nlohmann::ordered_json isolation_json(const Isolation& isolation) {
  nlohmann::ordered_json out = {{"sampled", isolation.sampled}, {"unstable", isolation.unstable}};
  if (isolation.unstable > 0) out["first_value"] = to_hex(isolation.first_value);
  return out;
}

nlohmann::ordered_json failures_json(std::span<const Failure> failures) {
  using Json = nlohmann::ordered_json;
  Json out = Json::array();
  for (const Failure& failure : failures) {
    out.push_back(
        {{"value", to_hex(failure.value)},
         {"outcome", to_string(failure.kind)},
         {"address", failure.address == 0 ? Json(nullptr) : Json(report_parts::address_text(failure.address))},
         {"instruction", failure.instruction},
         {"reason", failure.reason}});
  }
  return out;
}

nlohmann::ordered_json facts_json(std::span<const Fact> facts) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Fact& fact : facts) {
    out.push_back({{"what", fact.what}, {"values", fact.values}, {"first_value", to_hex(fact.first_value)}});
  }
  return out;
}

}  // namespace bitwitness::report_objects
