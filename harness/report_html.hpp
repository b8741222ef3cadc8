#pragma once
#include "harness/report.hpp"

#include <string>
#include <vector>

namespace bitwitness {

/// A text in lines with what it is, e.g. a routine's disassembly.
struct HtmlListing {
  std::string title;
  std::string text;
};

/// What a page shows besides the report, which only somebody with the image at hand has.
struct HtmlExtras {
  std::vector<HtmlListing> disassemblies;  ///< of the routines that ran
  HtmlListing trace;                       ///< of the first difference; an empty text when there is none
  std::string absence;                     ///< why something of the above is missing, a sentence
};

/// Writes one page of HTML that is well-formed XML too, needs neither network nor scripts, and follows the reader's
/// light or dark scheme: the verdict and what was compared, then for each run its agreement by word, histogram of
/// distances, distances over the codes of each field, and the listed differences and failures bit by bit with the
/// command that repeats each. Equal reports give equal bytes. A page shows at most a fixed number of differences and
/// says how many it leaves out; whatever comes from files is escaped.
std::string to_html(const Report& report, const HtmlExtras& extras = {});

}  // namespace bitwitness
