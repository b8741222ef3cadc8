#include "harness/error.hpp"
#include "harness/guest_runtime.hpp"
#include "harness/image_impl.hpp"
#include "harness/pe_common.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace bitwitness {
namespace {

constexpr unsigned most_forwards = 8;
constexpr std::uint64_t runtime_step = 0x10000;
constexpr std::size_t most_notes = 40;

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

/// A library's name as forwarders write it: lower case, without ".dll".
std::string stem(std::string_view library) {
  std::string name = lower(library);
  if (name.ends_with(".dll")) name.resize(name.size() - 4);
  return name;
}

}  // namespace

/// Puts images together. Host memory of a segment is our own: it is shown read-only, and changed here before anybody
/// looks.
class Image::Linker {
 public:
  explicit Linker(Impl& image) : image_(image) {}

  void add_libraries(std::vector<Image> libraries) {
    for (Image& library : libraries) {
      std::unique_ptr<Impl> impl = std::move(library.impl_);
      if (impl->format != image_.format) {
        throw Error(fmt::format("{}: is {}, {} is {}", impl->shown(), to_string(impl->format), image_.shown(),
                                to_string(image_.format)));
      }
      for (const Segment& segment : impl->segments) {
        require_free(segment.address, segment.bytes.size(), impl->shown());
        image_.segments.push_back(segment);
      }
      image_.imports.insert(image_.imports.end(), impl->imports.begin(), impl->imports.end());
      image_.notes.push_back(fmt::format("{} is mapped at {:#x}, sha256 {}", printable(impl->name), impl->base,
                                         impl->sha256.substr(0, 16)));
      by_name_.emplace(stem(impl->name), impl.get());
      image_.libraries.push_back(std::move(impl));
    }
  }

  void bind(bool c_runtime) {
    std::vector<Import> unbound;
    std::size_t bound = 0;
    for (Import& import : image_.imports) {
      std::optional<std::uint64_t> target = find_export(import.library, import.name, most_forwards);
      std::string where = import.library;
      if (!target && c_runtime && is_c_library(import.library) && !by_name_.contains(stem(import.library))) {
        target = find_runtime(import.name);
        where = "code of this program's own, exact or correctly rounded";
      }
      if (!target) {
        unbound.push_back(std::move(import));
        continue;
      }
      set_pointer(import.slot, *target);
      if (++bound <= most_notes) {
        image_.notes.push_back(fmt::format("{}!{} runs {}", import.library, import.name, where));
      }
      image_.bound_imports.push_back(std::move(import));
    }
    if (bound > most_notes) image_.notes.push_back(fmt::format("{} more imports are bound", bound - most_notes));
    image_.imports = std::move(unbound);
  }

  void set_memory(const MemoryPatch& patch) {
    const std::uint64_t size = patch.bytes.size();
    if (size == 0 || patch.address + size < patch.address) {
      throw Error(fmt::format("memory at {:#x}: {} bytes do not lie there", patch.address, size));
    }
    Segment* segment = find(patch.address);
    if (segment == nullptr) {
      const std::uint64_t first = patch.address / pe::page_size * pe::page_size;
      const std::uint64_t pages = (patch.address + size - first + pe::page_size - 1) / pe::page_size;
      const std::string what = fmt::format("memory at {:#x}", patch.address);
      segment = &map(what, first, pages * pe::page_size, true, false);
    }
    const std::uint64_t offset = patch.address - segment->address;
    if (size > segment->bytes.size() - offset) {
      throw Error(fmt::format("memory at {:#x}: {} bytes reach beyond {}, which ends at {:#x}", patch.address, size,
                              segment->name, segment->address + segment->bytes.size()));
    }
    std::memcpy(host(*segment, patch.address), patch.bytes.data(), patch.bytes.size());
    image_.patched_ranges.push_back({patch.address, size});
    image_.notes.push_back(fmt::format("{} bytes at {:#x} were set", size, patch.address));
  }

  void finish() { std::ranges::sort(image_.segments, {}, &Segment::address); }

 private:
  static std::byte* host(const Segment& segment, std::uint64_t address) {
    return const_cast<std::byte*>(segment.bytes.data()) + (address - segment.address);
  }

  Segment* find(std::uint64_t address) {
    const auto found = std::ranges::find_if(image_.segments, [&](const Segment& segment) {
      return address >= segment.address && address - segment.address < segment.bytes.size();
    });
    return found == image_.segments.end() ? nullptr : &*found;
  }

  [[nodiscard]] bool is_free(std::uint64_t address, std::uint64_t size) const {
    return std::ranges::none_of(image_.segments, [&](const Segment& segment) {
      return address < segment.address + segment.bytes.size() && segment.address < address + size;
    });
  }

  void require_free(std::uint64_t address, std::uint64_t size, const std::string& what) const {
    const std::uint64_t end = image_.format == ImageFormat::pe32 ? std::uint64_t{1} << 32 : std::uint64_t{1} << 47;
    if (size > end || address > end - size) {
      throw Error(fmt::format("{}: {} bytes at {:#x} are beyond what code can address", what, size, address));
    }
    if (!is_free(address, size)) {
      throw Error(fmt::format("{}: {} bytes at {:#x} overlap what is mapped there", what, size, address));
    }
  }

  Segment& map(const std::string& name, std::uint64_t address, std::uint64_t size, bool writable, bool executable) {
    constexpr std::uint64_t most = std::uint64_t{1} << 30;
    if (size > most) throw Error(fmt::format("{}: {} bytes are more than the {} that can be set", name, size, most));
    require_free(address, size, name);
    image_.pages.emplace_back(static_cast<std::size_t>(size));
    return image_.segments.emplace_back(
        Segment{.name = name,
                .address = address,
                .bytes = image_.pages.back().bytes().first(static_cast<std::size_t>(size)),
                .used = size,
                .writable = writable,
                .executable = executable,
                .is_added = true});
  }

  void set_pointer(std::uint64_t slot, std::uint64_t value) {
    const std::size_t size = image_.format == ImageFormat::pe32 ? 4 : 8;
    Segment* const segment = find(slot);
    if (segment == nullptr || slot - segment->address + size > segment->bytes.size()) return;
    std::memcpy(host(*segment, slot), &value, size);
  }

  std::optional<std::uint64_t> find_export(std::string_view library, std::string_view name, unsigned forwards) {
    const auto found = by_name_.find(stem(library));
    if (found == by_name_.end()) return std::nullopt;
    const Impl& impl = *found->second;
    const auto named = [&](const std::vector<NamedAddress>& list) -> std::optional<std::uint64_t> {
      const auto row = std::ranges::lower_bound(list, name, {}, &NamedAddress::name);
      if (row == list.end() || row->name != name) return std::nullopt;
      return row->address;
    };
    if (const auto address = named(impl.exports)) return address;
    const auto forwarder = named(impl.forwarded);
    if (!forwarder || forwards == 0) return std::nullopt;
    const std::string_view text = pe::Bytes(impl.memory.bytes()).text(*forwarder - impl.base, longest_forwarder);
    const std::size_t dot = text.rfind('.');
    if (dot == text.npos) return std::nullopt;
    return find_export(text.substr(0, dot), text.substr(dot + 1), forwards - 1);
  }

  std::optional<std::uint64_t> find_runtime(std::string_view name) {
    if (!runtime_) runtime_ = guest_runtime(image_.format == ImageFormat::pe32_plus);
    const auto function = std::ranges::find(runtime_->functions, name, &RuntimeFunction::name);
    if (function == runtime_->functions.end()) return std::nullopt;
    if (runtime_base_ == 0) map_runtime();
    return runtime_base_ + function->offset;
  }

  void map_runtime() {
    const std::uint64_t code = runtime_->code.size();
    const std::uint64_t size = code + GuestRuntime::heap_size;
    std::uint64_t base = (image_.base + image_.memory.bytes().size() + runtime_step) / runtime_step * runtime_step;
    while (!is_free(base, size)) base += runtime_step;
    const Segment& segment = map("runtime", base, code, false, true);
    std::memcpy(host(segment, base), runtime_->code.data(), runtime_->code.size());
    map("heap", base + code, GuestRuntime::heap_size, true, false);
    runtime_base_ = base;
  }

  static constexpr std::size_t longest_forwarder = 512;

  Impl& image_;
  std::map<std::string, const Impl*, std::less<>> by_name_;
  std::optional<GuestRuntime> runtime_;
  std::uint64_t runtime_base_ = 0;
};

Image Image::link(Image image, Surroundings surroundings) {
  Linker linker(*image.impl_);
  linker.add_libraries(std::move(surroundings.libraries));
  linker.bind(surroundings.c_runtime);
  for (const MemoryPatch& patch : surroundings.memory) linker.set_memory(patch);
  linker.finish();
  return image;
}

}  // namespace bitwitness
