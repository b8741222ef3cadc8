#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bitwitness {

enum class ImageFormat { pe32, pe32_plus };

/// Returns "pe32" or "pe32+", as reports spell it.
std::string_view to_string(ImageFormat format);

/// One mapped range of an image: the headers or a section, zero-filled to its virtual size and with relocations
/// applied. Ranges start on a page boundary, are a whole number of pages long, and never overlap.
struct Segment {
  std::string name;
  std::uint64_t address = 0;         ///< virtual address of the first byte
  std::span<const std::byte> bytes;  ///< page-aligned in host memory too; lives as long as the Image
  std::uint64_t used = 0;            ///< bytes that the file's headers give the range, before rounding up to pages
  bool writable = false;
  bool executable = false;
  bool is_added = false;  ///< by `link`, and in no file
};

/// An export or a COFF symbol. `address` is virtual.
struct NamedAddress {
  std::string name;
  std::uint64_t address = 0;
};

/// An imported function. `slot` is the virtual address of its entry in the import address table.
struct Import {
  std::string library;  ///< as the file spells it, e.g. "KERNEL32.dll"
  std::string name;     ///< "#12" when imported by ordinal
  std::uint64_t slot = 0;
};

struct ImageOptions {
  /// Load at this base instead of the preferred one. Needs relocations; a multiple of 64 KiB.
  std::optional<std::uint64_t> base;
};

/// Bytes that a routine finds at an address when it runs.
struct MemoryPatch {
  std::uint64_t address = 0;
  std::vector<std::byte> bytes;
};

/// A range of virtual addresses.
struct AddressRange {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
};

class Image;

/// What an image is to run beside.
struct Surroundings {
  std::vector<Image> libraries;  ///< their exports are bound to imports by library and name
  bool c_runtime = true;         ///< what no library has of the C library is bound to code of our own
  std::vector<MemoryPatch> memory;
};

/// A loaded PE32 or PE32+ executable. Immutable and safe to read from several threads.
class Image {
 public:
  /// Loads a file. Throws Error, naming the file and the offset or address, when it is not a PE for x86 or x86-64, is
  /// cut short, has overlapping or absurd sections, holds only .NET code, or cannot be moved to the base asked for.
  static Image load(const std::filesystem::path& path, const ImageOptions& options = {});

  /// Returns the image with its surroundings: libraries are mapped where they were loaded, imports of all of them bound
  /// to exports (forwarded ones followed) and the memory set, after which `imports` lists what is still unbound.
  /// `notes` say what was bound to what. Memory where nothing lies is mapped, a page at a time, to be read and written.
  /// Throws Error when libraries overlap, are of another width, or memory reaches beyond a segment.
  static Image link(Image image, Surroundings surroundings);

  Image(Image&&) noexcept;
  Image& operator=(Image&&) noexcept;
  ~Image();

  [[nodiscard]] const std::string& path() const;    ///< as given to load
  [[nodiscard]] const std::string& name() const;    ///< file name without its directory
  [[nodiscard]] const std::string& sha256() const;  ///< of the file, 64 lowercase hex digits
  [[nodiscard]] ImageFormat format() const;
  [[nodiscard]] std::uint64_t base() const;  ///< address it is mapped at
  [[nodiscard]] std::uint64_t size() const;  ///< bytes from base to the end of the last segment

  [[nodiscard]] std::span<const Segment> segments() const;      ///< by rising address
  [[nodiscard]] std::span<const NamedAddress> exports() const;  ///< by name
  [[nodiscard]] std::span<const NamedAddress> symbols() const;  ///< COFF functions and data with a section, by name
  [[nodiscard]] std::span<const Import> imports() const;
  [[nodiscard]] std::span<const Import> bound_imports() const;         ///< those that `link` has bound
  [[nodiscard]] std::span<const AddressRange> patched_ranges() const;  ///< memory that `link` has set

  /// What is odd about the file and did not stop it from being loaded, one sentence each: a damaged export table, …
  [[nodiscard]] std::span<const std::string> notes() const;

  /// Tells whether the file carries the marker of this project's stand-in executables.
  [[nodiscard]] bool is_stand_in() const;

  /// Returns the segment that holds an address, or null.
  [[nodiscard]] const Segment* find(std::uint64_t address) const;

  /// Returns `count` bytes at an address. Throws Error when they do not lie within one segment.
  [[nodiscard]] std::span<const std::byte> read(std::uint64_t address, std::size_t count) const;

  /// Resolves `0x…`, `rva:0x…`, `export:NAME` or `symbol:NAME` to a virtual address. Throws Error when it cannot.
  [[nodiscard]] std::uint64_t resolve(std::string_view location) const;

  /// Throws Error unless `address` lies in executable memory and what is there can be code: refused by name are zero
  /// fill and sections whose bytes look packed or encrypted. `what` names the address in the message ("--at 0x401000").
  void require_code(std::uint64_t address, std::string_view what) const;

 private:
  struct Impl;
  class Linker;
  explicit Image(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Version of the library that reads executables, e.g. "0.9.0".
std::string_view lief_version();

}  // namespace bitwitness
