#include "harness/report_html_parts.hpp"

namespace bitwitness::report_html {

// Neither '<' nor '&' may stand in it: the page is XML too.
std::string_view style() {
  return R"css(
:root { color-scheme: light dark; --back: #ffffff; --fore: #1b1f24; --mute: #57606a; --line: #c3cad1; --soft: #f3f5f7;
  --good: #116329; --bad: #b3261e; --warn: #7a4d00; --bar: #2f81c7; --link: #0550ae;
  --t0: #cfe8ff; --t1: #ffe2bd; --t2: #d3f3cf; --t3: #f6d3f0; --t4: #e3dcff; --t5: #ffd9d6;
  --p0: #0969da; --p1: #b35900; --p2: #1a7f37; --p3: #a626a4; }
@media (prefers-color-scheme: dark) {
  :root { --back: #14171a; --fore: #e6e8ea; --mute: #a3abb3; --line: #454c54; --soft: #1e2328;
    --good: #56d364; --bad: #ff8a80; --warn: #e3b341; --bar: #539bf5; --link: #79b8ff;
    --t0: #0d3a5f; --t1: #573800; --t2: #14461c; --t3: #5b1f52; --t4: #3b2f77; --t5: #612020;
    --p0: #6cb6ff; --p1: #ffb45e; --p2: #6bd17b; --p3: #f08be8; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--fore); font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif;
  overflow-wrap: anywhere; }
main, footer { max-width: 1160px; margin: 0 auto; padding: 0 20px; }
h1 { font-size: 1.5rem; margin: 20px 0 4px; }
h2 { font-size: 1.3rem; margin: 44px 0 6px; padding-top: 14px; border-top: 3px solid var(--line); }
h3 { font-size: 1.05rem; margin: 26px 0 8px; }
h4 { font-size: 1rem; margin: 0 0 8px; }
p { margin: 6px 0; }
a { color: var(--link); }
code, pre { font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; unicode-bidi: isolate; }
pre { margin: 0; white-space: pre; }
dd, li, td { unicode-bidi: isolate; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 3px 18px; margin: 10px 0; }
dt { color: var(--mute); }
dd { margin: 0; }
ul { margin: 4px 0; padding-left: 22px; }
.mute { color: var(--mute); }
.stand-in { position: sticky; top: 0; z-index: 1; background: #ffd33d; color: #1b1f24; text-align: center; font-weight: 700;
  padding: 10px 20px; border-bottom: 12px solid; border-image: repeating-linear-gradient(135deg, #1b1f24 0 14px,
  #ffd33d 14px 28px) 12; }
.stand-in.inner { position: static; margin: 8px 0; }
.verdict { font-weight: 700; padding: 12px 16px; border: 2px solid; border-left-width: 10px; background: var(--soft);
  margin: 12px 0; }
.agree { color: var(--good); }
.differ { color: var(--bad); }
.incomplete, .vacuous { color: var(--warn); }
.state { font-weight: 700; white-space: nowrap; }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: 5px 12px 5px 0; border-bottom: 1px solid var(--line); }
thead th { color: var(--mute); font-weight: 600; font-size: .875rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.number, thead th { white-space: nowrap; overflow-wrap: normal; }
td { min-width: 4em; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 330px), 1fr)); gap: 18px; }
figure { margin: 0; padding: 12px; border: 1px solid var(--line); border-radius: 6px; min-width: 0; }
figcaption { font-size: .875rem; margin-bottom: 8px; }
svg { display: block; width: 100%; max-width: 480px; height: auto; overflow: hidden; }
svg text { fill: var(--fore); font: 12px system-ui, "DejaVu Sans", sans-serif; }
svg .soft { fill: var(--mute); }
.axis { stroke: var(--mute); fill: none; }
.grid { stroke: var(--line); fill: none; stroke-dasharray: 2 3; }
.bar { fill: var(--bar); }
.off { fill: var(--bad); }
.p0, .p1, .p2, .p3 { fill: none; stroke-width: 1.6; }
.p0 { stroke: var(--p0); stroke-width: 6; stroke-linecap: round; }
.p1 { stroke: var(--p1); }
.p2 { stroke: var(--p2); }
.p3 { stroke: var(--p3); }
.difference { border: 1px solid var(--line); border-radius: 6px; padding: 14px; margin: 14px 0; }
.fields { display: flex; flex-wrap: wrap; gap: 8px; }
.fields span { padding: 2px 8px; border-radius: 4px; border: 1px solid var(--line); }
.fields b { font-weight: 700; }
.t0 { background: var(--t0); }
.t1 { background: var(--t1); }
.t2 { background: var(--t2); }
.t3 { background: var(--t3); }
.t4 { background: var(--t4); }
.t5 { background: var(--t5); }
.d { background: var(--fore); color: var(--back); font-weight: 700; text-decoration: underline; }
.words { width: 100%; margin: 10px 0; }
.words .same { color: var(--mute); }
.command { display: block; background: var(--soft); border: 1px solid var(--line); padding: 8px 10px; border-radius: 4px;
  white-space: pre-wrap; }
.listing { max-height: 70vh; overflow: auto; background: var(--soft); border: 1px solid var(--line); border-radius: 4px;
  padding: 10px; }
summary { cursor: pointer; font-weight: 600; margin: 8px 0; }
footer { margin-top: 44px; padding-bottom: 30px; color: var(--mute); }
@media (max-width: 700px) {
  main, footer { padding: 0 12px; }
  dl { grid-template-columns: minmax(0, 1fr); gap: 0; }
  dd { margin-bottom: 8px; }
  .difference { padding: 10px; }
  .words thead { display: none; }
  .words tr { display: flex; flex-wrap: wrap; border-bottom: 1px solid var(--line); padding: 6px 0; }
  .words th, .words td { border: 0; padding: 1px 14px 1px 0; }
  .words th { flex-basis: 100%; }
  .words pre { font-size: 12px; }
}
@media print {
  .stand-in { position: static; }
  .listing { max-height: none; }
}
)css";
}

}  // namespace bitwitness::report_html
