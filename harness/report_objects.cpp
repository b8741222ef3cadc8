#include "harness/report_objects.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bitwitness::report_objects {

nlohmann::ordered_json engine_json(const Engine& engine) {
  return {{"unicorn", engine.unicorn}, {"capstone", engine.capstone}, {"lief", engine.lief}, {"cpu", engine.cpu}};
}

nlohmann::ordered_json image_json(std::string_view name, std::string_view sha256, ImageFormat format, bool stand_in) {
  return {{"name", name}, {"sha256", sha256}, {"format", to_string(format)}, {"stand_in", stand_in}};
}

nlohmann::ordered_json environment_json(const Environment& environment) {
  return {{"fpcw", fmt::format("{:04x}", environment.fpcw)}, {"mxcsr", fmt::format("{:04x}", environment.mxcsr)}};
}

}  // namespace bitwitness::report_objects
