#include "harness/cli/run_values.hpp"

#include "harness/cli/corpus_values.hpp"
#include "harness/cli/decoder_subject.hpp"
#include "harness/cli/progress.hpp"
#include "harness/cli/surroundings.hpp"
#include "harness/error.hpp"

#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace bitwitness::cli {

ValueSet build_values(const SelectedRoutine& selected, std::size_t packed_size, std::span<const BitField> fields,
                      const ValueArguments& arguments, unsigned jobs, const std::stop_token& stop) {
  ValueOptions options;
  if (arguments.shard) options.shard = parse_shard(*arguments.shard);
  options.memory = parse_memory(arguments.memory);
  options.corpus = [&](DistinctValues& values, const std::string& path) {
    ProgressLine line(selected.routine.name + " corpus");
    CorpusOptions corpus;
    corpus.scan = arguments.scan;
    corpus.jobs = jobs;
    corpus.stop = stop;
    corpus.progress = [&line](const CorpusProgress& progress) { line.show(progress_text(progress)); };
    if (selected.decoder == nullptr) {
      throw Error(
          fmt::format("corpus:{}: which of its values are the routine's is known of a target's routines and of "
                      "registered decoders only",
                      path));
    }
    return add_corpus_values(values, path, selected.decoder->name, corpus);
  };
  try {
    return ValueSet::build(packed_size, fields, arguments.sources, options);
  } catch (const Error& error) {
    throw Error(fmt::format("--values for {}: {}", selected.routine.name, error.what()));
  }
}

std::vector<std::string> first_notes(const SelectedRoutine& selected, const ValueSet& values,
                                     const Environment& environment, std::string_view witness) {
  std::vector<std::string> notes;
  if (!selected.note.empty()) notes.push_back(selected.note);
  notes.insert(notes.end(), values.notes().begin(), values.notes().end());
  for (std::string& note : environment_notes(environment, witness)) notes.push_back(std::move(note));
  return notes;
}

std::vector<std::string> files_read(const Image& image, const ImageArguments& image_arguments,
                                    const RoutineArguments& routine, const ValueArguments& values) {
  std::vector<std::string> files = surrounding_files(image_arguments);
  files.push_back(image.path());
  const auto& target = routine.target;
  if (target && (target->find('/') != std::string::npos || target->ends_with(".toml"))) files.push_back(*target);
  if (routine.decoder) {
    for (std::string& file : decoder_files(*routine.decoder)) files.push_back(std::move(file));
  }
  for (const std::string& source : values.sources) {
    for (const std::string_view kind : {"file:", "corpus:"}) {
      if (source.starts_with(kind)) files.push_back(source.substr(kind.size()));
    }
  }
  return files;
}

}  // namespace bitwitness::cli
