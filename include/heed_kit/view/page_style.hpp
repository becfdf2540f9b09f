// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <string_view>

namespace heed::inline HEED_TARGET::view::detail {

// The style of html()'s page. Colors are variables, for light and for dark; the script selects one set.
inline constexpr std::string_view page_style = R"css(
:root {
    --page: #f4f5f7; --card: #ffffff; --line: #e3e6ea; --text: #1f242c; --soft: #626b77; --cell: #eff1f4;
    --ink: 24 100 171; --gold: 217 72 15; --accent: #1971c2; --accent-soft: #e7f1fb; --bad: #ffa8a8; --on-deep: #ffffff;
    --shadow: 0 1px 2px rgb(0 0 0 / .05), 0 4px 16px rgb(0 0 0 / .04);
    font: 15px/1.5 system-ui, 'Noto Sans', 'DejaVu Sans', sans-serif; color-scheme: light; scrollbar-gutter: stable;
}
:root[data-theme=dark] {
    --page: #14161a; --card: #1c1f25; --line: #30353e; --text: #e6e9ee; --soft: #98a2b0; --cell: #272b33;
    --ink: 116 192 252; --gold: 255 169 77; --accent: #74c0fc; --accent-soft: #22384c; --bad: #a33c3c; --on-deep: #0d1116;
    --shadow: none; color-scheme: dark;
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0; min-height: 100vh; display: grid; grid-template: auto 1fr / 17rem minmax(0, 1fr);
    background: var(--page); color: var(--text); }
h1, h2, h3, p, ul { margin: 0; padding: 0; }
button, input { font: inherit; color: inherit; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.soft { color: var(--soft); font-size: .87rem; }

header { grid-column: 1 / -1; display: flex; flex-wrap: wrap; gap: .4rem 1.5rem; align-items: center;
    justify-content: space-between; padding: .8rem 1.25rem; background: var(--card); border-bottom: 1px solid var(--line); }
h1 { font-size: 1.15rem; font-weight: 650; line-height: 1.3; }
.tools { display: flex; gap: .5rem; align-items: center; flex-wrap: wrap; }
.button { border: 1px solid var(--line); background: var(--card); border-radius: 8px; padding: .22rem .7rem; cursor: pointer;
    font-size: .87rem; display: inline-flex; gap: .45rem; align-items: center; }
.button:hover { border-color: var(--accent); }
.button:disabled { opacity: .4; cursor: default; border-color: var(--line); }
.button input { accent-color: var(--accent); margin: 0; }
.button[aria-pressed=true] { background: var(--accent-soft); border-color: transparent; }
.button[aria-pressed=false] { color: var(--soft); text-decoration: line-through; }

nav { padding: .9rem .75rem; display: flex; flex-direction: column; gap: .6rem; position: sticky; top: 0;
    align-self: start; max-height: calc(100vh - var(--head, 4rem)); }
#filter { width: 100%; padding: .35rem .65rem; border-radius: 8px; border: 1px solid var(--line); background: var(--card);
    font-size: .87rem; }
#list { list-style: none; overflow-y: auto; flex: 1; border-radius: 8px; padding: 2px; }
#list li { display: flex; gap: .6rem; padding: .32rem .55rem; border-radius: 7px; cursor: pointer; font-size: .87rem;
    line-height: 1.4; }
#list li .n { color: var(--soft); min-width: 1.6em; text-align: right; font-variant-numeric: tabular-nums; flex: none; }
#list li .w { flex: 1; min-width: 0; overflow: hidden; white-space: nowrap; text-overflow: ellipsis; }
#list li:hover { background: var(--card); }
#list li[aria-selected=true] { background: var(--accent-soft); color: var(--accent); font-weight: 550; }
#list li[aria-selected=true] .n { color: inherit; }

main { border-left: 1px solid var(--line); padding: 1rem 1.25rem 2rem; min-width: 0; }
.bar { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; margin-bottom: .75rem; }
h2 { font-size: 1rem; font-weight: 600; font-variant-numeric: tabular-nums; }
#systems { display: flex; gap: .4rem; flex-wrap: wrap; margin-inline-start: auto; }
#reference { margin-bottom: .75rem; }
#cards { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, var(--least, 18rem)), 1fr)); align-items: start; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: .9rem 1rem 1rem;
    box-shadow: var(--shadow); min-width: 0; }
/* Corresponding parts of adjacent cards are aligned, for any number of lines of words above. */
@supports (grid-template-rows: subgrid) {
    #cards { row-gap: 0; }
    .card { display: grid; grid: subgrid / minmax(0, 1fr); grid-row: span 9; margin-bottom: 1rem; }
    .card > .readout { grid-row: 6; }
    .card > .matrix { grid-row: 7; }
    .card > .views { grid-row: 8; align-self: start; }
    .card > .legend { grid-row: 9; align-self: start; }
}
.card.gold { --ink: var(--gold); }
.card > .head { display: flex; flex-wrap: wrap; gap: .1rem .8rem; align-items: baseline; justify-content: space-between; }
h3 { font-size: 1rem; font-weight: 650; }
.role { display: block; margin: .55rem 0 .1rem; color: var(--soft); font-size: .72rem; letter-spacing: .06em;
    text-transform: uppercase; }
.words { display: flex; flex-wrap: wrap; gap: .2rem; align-content: start; }
.words button { border: 0; border-radius: 6px; padding: .1rem .42rem; cursor: pointer; line-height: 1.45; max-width: 100%;
    overflow-wrap: anywhere; background: rgb(var(--ink) / var(--w, 0)); box-shadow: inset 0 0 0 1px var(--line); }
.words button.shaded { box-shadow: none; }
:root[data-theme=light] .words button.deep, :root[data-theme=dark] .words button.half { color: var(--on-deep); }
.words button.chosen { box-shadow: inset 0 0 0 2px var(--accent); }
.words button[aria-pressed=true] { box-shadow: inset 0 0 0 2px var(--accent); text-decoration: underline;
    text-underline-offset: .2em; text-decoration-thickness: 2px; }
.readout { margin-top: .55rem; font-size: .87rem; color: var(--soft); font-variant-numeric: tabular-nums; }
/* Always two lines, so that the matrix below does not move under the pointer. */
.card .readout.live { height: 3em; overflow: hidden; }
.readout b { color: var(--text); font-weight: 600; }
.readout .pair { white-space: nowrap; margin-inline-end: .45em; }

.views { display: flex; flex-wrap: wrap; gap: .5rem .9rem; align-items: center; margin-top: .6rem; }
fieldset { border: 0; padding: 3px; margin: 0; display: inline-flex; flex-wrap: wrap; background: var(--cell); border-radius: 9px; }
fieldset label { cursor: pointer; flex: 1 0 auto; text-align: center; }
fieldset span { display: block; padding: .12rem .65rem; border-radius: 7px; font-size: .83rem; color: var(--soft); }
fieldset input { position: absolute; opacity: 0; pointer-events: none; }
fieldset input:checked + span { background: var(--card); color: var(--text); box-shadow: 0 1px 2px rgb(0 0 0 / .14); }
:root[data-theme=dark] fieldset input:checked + span { background: var(--accent-soft); }
fieldset input:focus-visible + span { outline: 2px solid var(--accent); outline-offset: 1px; }
.slider { display: flex; gap: .6rem; align-items: center; flex: 1 1 12rem; font-size: .83rem; color: var(--soft); }
.slider input { flex: 1; min-width: 5rem; accent-color: var(--accent); }
.slider output { font-variant-numeric: tabular-nums; white-space: nowrap; }

.matrix { display: flex; overflow-x: auto; margin-top: .4rem; }
.matrix svg { flex: none; touch-action: pan-x pan-y; cursor: crosshair; }
.matrix .names { position: sticky; left: 0; background: var(--card); }
.matrix text { font-size: var(--size, 13px); fill: var(--text); }
.matrix text.small { font-size: 11px; fill: var(--soft); }
.matrix text.on { font-weight: 700; fill: var(--accent); }
.matrix .paper { fill: var(--cell); }
.matrix .ink { fill: rgb(var(--ink)); }
.matrix .bad { fill: var(--bad); }
.matrix .sure, .matrix .possible { fill: none; stroke: rgb(var(--gold)); stroke-width: var(--mark, 2px); }
.matrix .possible { stroke-width: calc(.8 * var(--mark, 2px)); stroke-dasharray: 2.5 2.5; }
.matrix .band { fill: none; stroke: var(--accent); stroke-width: 1.5; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; margin-top: .5rem; color: var(--soft); font-size: .78rem; }
.legend span { display: inline-flex; gap: .4rem; align-items: center; }
.legend i { display: inline-block; width: 12px; height: 12px; border-radius: 3px; }
.legend i.scale { width: 84px; background: linear-gradient(90deg, rgb(var(--ink) / 0), rgb(var(--ink) / 1)), var(--cell); }
.legend i.full { background: rgb(var(--ink)); }
.legend i.part { background: rgb(var(--ink) / .4); }
.legend i.sure { border: 2px solid rgb(var(--gold)); }
.legend i.possible { border: 1.5px dashed rgb(var(--gold)); }
#help { flex-basis: 100%; }
#help span { display: inline-block; margin-inline-end: 1.3em; white-space: nowrap; }
kbd { font: inherit; font-size: .78rem; border: 1px solid var(--line); border-bottom-width: 2px; border-radius: 5px;
    padding: 0 .35em; background: var(--card); white-space: nowrap; }
.button[aria-expanded=true] { background: var(--accent-soft); border-color: transparent; }

@media (max-width: 52rem) {
    body { grid-template: auto auto 1fr / minmax(0, 1fr); }
    nav { position: static; max-height: none; border-bottom: 1px solid var(--line); }
    #list { max-height: 9.5rem; }
    main { border-left: 0; padding: .8rem .75rem 1.5rem; }
    header { padding: .7rem .75rem; }
}
@media (prefers-reduced-motion: no-preference) { .words button { transition: background-color .09s; } }
@media print { nav, .tools, #help, .bar button { display: none; } body { display: block; } .card { break-inside: avoid; } }
)css";

}  // namespace heed::inline HEED_TARGET::view::detail
