#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace bitwitness::cli {

/// Writes "bitwitness: MESSAGE" as one line on standard error.
void complain(std::string_view message);

/// Writes a text to standard output. Throws Error when not all of it arrived (a closed pipe, a full device).
void write_standard_output(std::string_view text);

/// Throws Error, naming the option, unless a file can be written there. Called before long work whose result goes
/// there.
void require_writable(std::string_view option, const std::string& path);

/// Writes a whole file under a temporary name in its folder and renames it, so that readers see the old one or the new
/// one. What exists and is not a regular file (a device, a pipe) is written in place. Throws Error that names the
/// option.
void write_file(std::string_view option, const std::string& path, std::string_view text);

/// Takes the next piece of an output.
using TextSink = std::function<void(std::string_view)>;

/// Writes a file as write_file does, from pieces that `produce` hands to the sink it is given; "-" is standard output.
void write_pieces(std::string_view option, const std::string& path,
                  const std::function<void(const TextSink&)>& produce);

}  // namespace bitwitness::cli
