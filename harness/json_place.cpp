#include "harness/json_place.hpp"

#include "harness/values.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

namespace bitwitness {

namespace {

using Json = nlohmann::json;

constexpr std::size_t word_digits = 8;

/// No document of this project is nested deeper than half of this.
constexpr std::size_t max_depth = 16;

/// Characters of a foreign text that a message repeats.
constexpr std::size_t max_quoted = 40;

std::string shortened(std::string_view text) {
  return text.size() <= max_quoted ? std::string(text) : std::string(text.substr(0, max_quoted)) + "…";
}

/// Follows the parser, so that what the parsed document no longer shows is refused: repeated keys, depth, too many
/// values.
class Watch {
 public:
  explicit Watch(const std::string& file) : file_(file) {}

  bool operator()(Json::parse_event_t event, const Json& parsed) {
    switch (event) {
      case Json::parse_event_t::key:
        add_key(parsed.get_ref<const std::string&>());
        break;
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        if (levels_.size() == max_depth) {
          throw Error(fmt::format("{}: {} is nested deeper than {} levels", file_, path(), max_depth));
        }
        levels_.push_back({event == Json::parse_event_t::object_start, {}, 0, {}});
        break;
      case Json::parse_event_t::object_end:
      case Json::parse_event_t::array_end:
        levels_.pop_back();
        add_value();
        break;
      case Json::parse_event_t::value:
        add_value();
        break;
    }
    return true;
  }

 private:
  struct Level {
    bool is_object = false;
    std::string key;
    std::size_t index = 0;
    std::set<std::string> keys;
  };

  void add_key(const std::string& key) {
    Level& level = levels_.back();
    level.key = key;
    if (!level.keys.insert(key).second) throw Error(fmt::format("{}: {} is there twice", file_, path()));
  }

  void add_value() {
    if (++values_ > max_json_values) throw Error(fmt::format("{}: holds more than {} values", file_, max_json_values));
    if (!levels_.empty() && !levels_.back().is_object) ++levels_.back().index;
  }

  [[nodiscard]] std::string path() const {
    std::string path;
    for (const Level& level : levels_) {
      if (!level.is_object) {
        path += fmt::format("[{}]", level.index);
      } else {
        path += (path.empty() ? "" : ".") + shortened(level.key);
      }
    }
    return path;
  }

  const std::string& file_;
  std::vector<Level> levels_;
  std::size_t values_ = 0;
};

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& file) {
  if (text.size() > max_json_size) {
    throw Error(fmt::format("{}: has {} bytes; at most {} are read", file, text.size(), max_json_size));
  }
  Watch watch(file);
  try {
    return Json::parse(text, [&watch](int, Json::parse_event_t event, Json& parsed) { return watch(event, parsed); });
  } catch (const Json::parse_error& error) {
    throw Error(fmt::format("{}: not JSON, at byte {}", file, error.byte));
  } catch (const Json::exception&) {
    throw Error(fmt::format("{}: not JSON: a number beyond all bounds", file));
  }
}

std::string JsonPlace::join(std::string_view key) const {
  return path_.empty() ? shortened(key) : path_ + '.' + shortened(key);
}

std::optional<JsonPlace> JsonPlace::find(const char* key) const {
  require(json_.is_object(), "is not an object");
  const auto found = json_.find(key);
  if (found == json_.end()) return std::nullopt;
  return JsonPlace(*found, file_, join(key));
}

JsonPlace JsonPlace::operator[](const char* key) const {
  const std::optional<JsonPlace> found = find(key);
  if (!found) throw Error(fmt::format("{}: {} is missing", file_, join(key)));
  return *found;
}

void JsonPlace::allow(std::initializer_list<std::string_view> keys) const {
  require(json_.is_object(), "is not an object");
  for (const auto& [key, member] : json_.items()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      throw Error(fmt::format("{}: {} is not known", file_, join(key)));
    }
  }
}

std::vector<JsonPlace> JsonPlace::items() const {
  require(json_.is_array(), "is not an array");
  std::vector<JsonPlace> out;
  out.reserve(json_.size());
  for (std::size_t i = 0; i < json_.size(); ++i) out.push_back({json_[i], file_, fmt::format("{}[{}]", path_, i)});
  return out;
}

std::string JsonPlace::text() const {
  require(json_.is_string(), "is not a string");
  return json_.get<std::string>();
}

std::vector<std::string> JsonPlace::texts() const {
  std::vector<std::string> out;
  for (const JsonPlace& item : items()) out.push_back(item.text());
  return out;
}

bool JsonPlace::flag() const {
  require(json_.is_boolean(), "is not true or false");
  return json_.get<bool>();
}

std::uint64_t JsonPlace::count(std::uint64_t most) const {
  require(json_.is_number_unsigned(), "is not a count");
  const auto number = json_.get<std::uint64_t>();
  if (number > most) refuse(fmt::format("is {}, at most {} are allowed", number, most));
  return number;
}

std::uint64_t JsonPlace::hex(std::uint64_t most) const {
  const std::string digits = text();
  const std::string_view bare = std::string_view(digits).substr(digits.starts_with("0x") ? 2 : 0);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(bare.data(), bare.data() + bare.size(), value, 16);
  const bool whole = !bare.empty() && error == std::errc() && end == bare.data() + bare.size();
  if (!whole || value > most) refuse(fmt::format("is {}: expected hex digits, at most {:x}", shortened(digits), most));
  return value;
}

std::vector<std::byte> JsonPlace::bytes() const {
  const std::string digits = text();
  return said([&] { return parse_hex(digits); });
}

std::vector<std::uint32_t> JsonPlace::words() const {
  std::vector<std::uint32_t> out;
  for (const JsonPlace& word : items()) {
    word.require(word.text().size() == word_digits, "is not 8 hex digits");
    out.push_back(static_cast<std::uint32_t>(word.hex(0xffffffff)));
  }
  return out;
}

void JsonPlace::require(bool holds, std::string_view otherwise) const {
  if (!holds) refuse(otherwise);
}

void JsonPlace::refuse(std::string_view what) const {
  throw Error(fmt::format("{}: {} {}", file_, path_.empty() ? "the document" : path_, what));
}

void JsonPlace::pass_on(std::string_view complaint) const {
  throw Error(fmt::format("{}: {}: {}", file_, path_, complaint));
}

}  // namespace bitwitness
