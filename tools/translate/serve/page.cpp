// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>

#include <heed_kit/view/page.hpp>

#include "service.hpp"

namespace translation {

namespace {

// In addition to the style of view::html, whose colors and buttons are used.
constexpr const char* style = R"css(
body { display: block; }
main { border: 0; max-width: 64rem; margin: 0 auto; padding: 1rem 1.25rem 3rem; }
label.of { display: block; font-weight: 600; margin-bottom: .35rem; }
textarea { width: 100%; min-height: 5.2rem; resize: vertical; padding: .7rem .85rem; border-radius: 10px;
    border: 1px solid var(--line); background: var(--card); color: var(--text); font: inherit; font-size: 1.05rem; }
.how { color: var(--soft); margin-bottom: .9rem; max-width: 44rem; }
.examples { display: flex; flex-wrap: wrap; gap: .4rem; align-items: center; margin-top: .5rem; }
.examples button { text-align: start; }
.bar { margin: .6rem 0 1rem; row-gap: .5rem; }
.bar label { display: inline-flex; gap: .4rem; align-items: center; font-size: .87rem; color: var(--soft); }
.bar input[type=number] { width: 4.2rem; padding: .15rem .4rem; border: 1px solid var(--line); border-radius: 7px;
    background: var(--card); color: var(--text); }
#state { margin-left: auto; font-variant-numeric: tabular-nums; }
#state.bad { color: var(--text); background: var(--bad); border-radius: 7px; padding: .1rem .5rem; }
article { background: var(--card); border: 1px solid var(--line); border-radius: 12px; box-shadow: var(--shadow);
    padding: .85rem 1rem 1rem; margin-bottom: .9rem; }
article.old { opacity: .55; }
.line { display: flex; flex-wrap: wrap; gap: .15rem .1rem; line-height: 1.7; }
.line.from { color: var(--soft); }
.line.to { font-size: 1.25rem; font-weight: 500; margin-top: .2rem; }
.word { border-radius: 5px; padding: 0 .22rem; cursor: default; }
.word.end { opacity: .6; font-size: .8em; align-self: center; }
.word[tabindex] { cursor: pointer; }
.word.at { box-shadow: inset 0 0 0 2px var(--accent); }
.word.deep { color: var(--on-deep); }
details { margin-top: .7rem; }
summary { cursor: pointer; color: var(--soft); font-size: .87rem; border-radius: 5px; }
.matrix { overflow-x: auto; margin-top: .5rem; }
table { border-collapse: separate; border-spacing: 2px; font-size: .82rem; }
th { font-weight: 500; color: var(--soft); white-space: nowrap; text-align: right; padding: 0 .4rem 0 0; }
thead th { writing-mode: vertical-rl; transform: rotate(180deg); text-align: left; padding: .3rem 0 0; height: 4.6rem; }
td { width: 1.35rem; min-width: 1.35rem; height: 1.35rem; border-radius: 4px; background: var(--cell); padding: 0; }
td.at { box-shadow: 0 0 0 2px var(--accent); }
.others { list-style: none; margin-top: .6rem; display: grid; gap: .25rem; }
.others button { width: 100%; text-align: start; border: 1px solid transparent; background: none; border-radius: 8px; padding: .22rem .5rem;
    cursor: pointer; display: flex; gap: .75rem; }
.others button:hover { border-color: var(--accent); }
.others button[aria-pressed=true] { background: var(--accent-soft); }
.others .n { margin-left: auto; color: var(--soft); font-size: .82rem; font-variant-numeric: tabular-nums; }
)css";

constexpr const char* script = R"js(
'use strict';
const $ = id => document.getElementById(id);
const make = (tag, of, text) => { const e = document.createElement(tag); Object.assign(e, of || {}); if (text !== undefined) e.textContent = text; return e; };
const looks = document.body.dataset.looks === '1';
const root = document.documentElement;

// ---- light and dark
const dark = matchMedia('(prefers-color-scheme: dark)');
let theme = null;
try { theme = localStorage.getItem('heed-theme'); } catch (none) {}
function paint() {
    const now = theme || (dark.matches ? 'dark' : 'light');
    root.dataset.theme = now;
    $('theme').textContent = now === 'dark' ? 'Light' : 'Dark';
}
$('theme').onclick = () => {
    theme = root.dataset.theme === 'dark' ? 'light' : 'dark';
    try { localStorage.setItem('heed-theme', theme); } catch (none) {}
    paint();
};
dark.addEventListener('change', paint);
paint();

// ---- the languages: codes become names
const language = part => document.body.dataset[part] || '';
const code = part => /^[a-z]{2,3}(-[A-Za-z0-9]+)*$/.test(language(part)) ? language(part) : '';
function name(part) {
    try { return new Intl.DisplayNames(['en'], {type: 'language'}).of(code(part)); } catch (none) { return language(part); }
}
for (const part of ['from', 'to'])
    for (const e of document.querySelectorAll('[data-name=' + part + ']')) e.textContent = name(part);
if (code('from')) for (const e of [$('text'), ...document.querySelectorAll('.examples button')]) e.lang = code('from');

// ---- requests
let asked = null, timer = 0, last = '';
function say(text, bad) { $('state').textContent = text; $('state').classList.toggle('bad', !!bad); }
function later() { clearTimeout(timer); timer = setTimeout(ask, 180); }
async function ask() {
    const lines = $('text').value.split('\n').map(l => l.trim()).filter(l => l);
    const beam = Math.max(1, Math.min(+$('beam').max, Math.round(+$('beam').value) || 1));
    const weights = lines.reduce((sum, l) => sum + (l.split(/\s+/).length + 1) ** 2, 0);  // an answer must not be too long
    const alternatives = weights > 15000 ? 1 : Math.min(5, beam);
    const what = JSON.stringify({text: lines, beam, alternatives, ...(looks ? {alignment: true} : {})});
    if (what === last) return;
    if (asked) asked.abort();
    last = what;
    if (!lines.length) { asked = null; $('answers').replaceChildren(); say(''); return; }
    const mine = asked = new AbortController();
    for (const old of $('answers').children) old.classList.add('old');
    say('…');
    const start = performance.now();
    try {
        const got = await fetch('translate', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: what, signal: mine.signal});
        const said = await got.json();
        if (mine !== asked) return;
        if (got.status === 429 || got.status === 503) {
            last = '';
            const wait = +(got.headers.get('Retry-After') || 1);
            say('busy: retrying in ' + wait + ' s', true);
            clearTimeout(timer);
            timer = setTimeout(ask, 1000 * wait);
            return;
        }
        if (!got.ok) { say(said.error, true); return; }
        $('answers').replaceChildren(...said.translations.map(card));
        say(Math.round(performance.now() - start) + ' ms');
    } catch (problem) {
        if (problem.name === 'AbortError') return;
        last = '';
        say('the service does not respond', true);
    }
}

// ---- one sentence
function shade(element, weight) {
    const w = Math.max(0, Math.min(1, weight)), ink = 'rgb(var(--ink) / ' + w.toFixed(3) + ')';
    element.style.backgroundImage = w < 0.005 ? '' : 'linear-gradient(' + ink + ', ' + ink + ')';  // over its own color
    element.classList.toggle('deep', w > 0.55);
}
function card(said) {
    const box = make('article');
    const all = said.alternatives && said.alternatives.length ? said.alternatives : [said];
    const source = said.source;
    const from = make('div', {className: 'line from', dir: 'auto', lang: code('from')}), to = make('div', {className: 'line to', dir: 'auto', lang: code('to')});
    from.setAttribute('role', 'group'); from.setAttribute('aria-label', 'Source');
    to.setAttribute('role', 'group'); to.setAttribute('aria-label', 'Translation');
    if (source) box.append(from);
    box.append(to);
    const table = make('div', {className: 'matrix'});
    if (source) {
        const details = make('details', {open: innerWidth > 700});
        details.append(make('summary', {}, 'Attention weights'), table);
        box.append(details);
    }
    const others = make('ul', {className: 'others'});
    if (all.length > 1) {
        all.forEach((one, k) => {
            const item = make('li'), button = make('button', {type: 'button', onclick: () => show(k)});
            button.append(make('span', {dir: 'auto'}, one.text || '(nothing)'), make('span', {className: 'n', title: 'score'}, one.score.toFixed(2)));
            item.append(button);
            others.append(item);
        });
        box.append(others);
    }
    let sources = [], targets = [], cells = [], kept = null;

    function mark(side, at) {
        const weights = all[shown].alignment;
        [...sources, ...targets, ...cells.flat()].forEach(e => { e.classList.remove('at'); });
        sources.forEach((e, t) => shade(e, side === 'to' && weights ? weights[at][t] : 0));
        targets.forEach((e, s) => shade(e, side === 'from' && weights && s < weights.length ? weights[s][at] : 0));
        if (side) (side === 'to' ? targets : sources)[at].classList.add('at');
        if (side && weights) cells.forEach((row, s) => row.forEach((c, t) => c.classList.toggle('at', (side === 'to' ? s : t) === at)));
    }
    const back = () => kept ? mark(...kept) : mark(null);
    function word(text, side, at, end) {
        const e = make('span', {className: 'word' + (end ? ' end' : '')}, text);
        if (!source) return e;
        e.tabIndex = at === 0 && side === 'to' ? 0 : -1;
        e.setAttribute('role', 'button');
        e.onmouseenter = () => mark(side, at);
        e.onmouseleave = back;
        e.onfocus = () => { mark(side, at); };
        e.onblur = back;
        e.onclick = () => { kept = kept && kept[0] === side && kept[1] === at ? null : [side, at]; back(); };
        e.onkeydown = event => {
            const list = side === 'to' ? targets : sources, other = side === 'to' ? sources : targets;
            const ltr = getComputedStyle(e.parentNode).direction !== 'rtl';
            const step = {ArrowRight: ltr ? 1 : -1, ArrowLeft: ltr ? -1 : 1}[event.key];
            let next = null;
            if (step) next = list[at + step];
            else if (event.key === 'Home') next = list[0];
            else if (event.key === 'End') next = list[list.length - 1];
            else if (event.key === 'ArrowUp' || event.key === 'ArrowDown') next = other[Math.min(at, other.length - 1)];
            else if (event.key === 'Enter' || event.key === ' ') e.click();
            else if (event.key === 'Escape') { kept = null; back(); e.blur(); return; }
            else return;
            event.preventDefault();
            if (next) { [...sources, ...targets].forEach(o => { o.tabIndex = -1; }); next.tabIndex = 0; next.focus(); }
        };
        return e;
    }
    let shown = 0;
    function show(k) {
        shown = k;
        kept = null;
        const one = all[k], weights = one.alignment;
        targets = one.words.map((w, i) => word(w, 'to', i));
        to.replaceChildren(...targets);
        if (!one.words.length) to.append(make('span', {className: 'soft'}, '(nothing)'));
        [...others.querySelectorAll('button')].forEach((b, i) => b.setAttribute('aria-pressed', i === k));
        if (!source) return;
        sources = source.map((w, i) => word(w, 'from', i, i + 1 === source.length));
        from.replaceChildren(...sources);
        const t = make('table'), head = make('thead'), row = make('tr'), body = make('tbody');
        row.append(make('th'));
        source.forEach(w => row.append(make('th', {scope: 'col'}, w)));
        head.append(row);
        cells = [];
        (weights || []).forEach((line, s) => {
            const r = make('tr');
            r.append(make('th', {scope: 'row'}, s < one.words.length ? one.words[s] : '</s>'));
            cells.push(line.map((w, at) => {
                const c = make('td', {title: (one.words[s] || '</s>') + ' – ' + source[at] + ': ' + w.toFixed(3)});
                shade(c, w);
                if (s < targets.length) { c.onmouseenter = () => mark('to', s); c.onmouseleave = back; }
                r.append(c);
                return c;
            }));
            body.append(r);
        });
        t.append(head, body);
        table.replaceChildren(t);
        // mark() must leave the matrix's shades: it only outlines cells.
    }
    show(0);
    return box;
}

$('text').addEventListener('input', later);
$('beam').addEventListener('input', later);
for (const button of document.querySelectorAll('.examples button'))
    button.onclick = () => { $('text').value = button.textContent; $('text').focus(); ask(); };
document.addEventListener('keydown', event => {
    if (event.key === '/' && document.activeElement === document.body) { event.preventDefault(); $('text').focus(); }
});
if ($('text').value) ask();
)js";

}  // namespace

std::string page_of_service(const engine& with, std::size_t most_beam)
{
    using heed::view::detail::escaped;
    const bool known = !with.from.empty() && !with.to.empty();
    const auto language = [](const std::string& name, const char* part) {
        return "<span data-name=\"" + std::string(part) + "\">" + escaped(name) + "</span>";
    };
    std::string page =
        "<!DOCTYPE html>\n<html lang=\"en\" data-theme=\"light\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>" +
        escaped(with.name) + "</title>\n<style>";
    page += heed::view::detail::page_style;
    page += style;
    page += "</style>\n</head>\n<body data-looks=\"" + std::string(with.has_attention ? "1" : "0") + '"';
    if (known) page += " data-from=\"" + escaped(with.from) + "\" data-to=\"" + escaped(with.to) + '"';
    page +=
        ">\n<header><h1 dir=\"auto\">" + escaped(with.name) +
        "</h1>\n<div class=\"tools\"><button class=\"button\" type=\"button\" id=\"theme\"></button></div></header>\n"
        "<main><p class=\"how\">";
    page += known ? "Translates from " + language(with.from, "from") + " to " + language(with.to, "to") + ". Type "
                  : std::string("Type ");
    page += "a sentence, or several on separate lines: the translation appears below, with others that the model "
            "considered.";
    if (with.has_attention)
        page += " Point at a word, or tap it, to see which words of your sentence the model attended to.";
    page += "</p>\n<label class=\"of\" for=\"text\">" +
            (known ? language(with.from, "from") + " text" : std::string("Text to translate")) +
            ", one sentence per line</label>\n"
            "<textarea id=\"text\" dir=\"auto\" autofocus spellcheck=\"false\" aria-keyshortcuts=\"/\"></textarea>\n";
    if (!with.examples.empty()) {
        page += "<div class=\"examples\"><span class=\"soft\">" +
                std::string(with.examples.size() == 1 ? "Example:" : "Examples:") + "</span>";
        for (const std::string& each : with.examples)
            page += "<button class=\"button\" type=\"button\" dir=\"auto\">" + escaped(each) + "</button>";
        page += "</div>\n";
    }
    page += "<div class=\"bar\"><label title=\"Number of hypotheses in the search: larger is slower\">Beam "
            "<input type=\"number\" id=\"beam\" min=\"1\" max=\"" +
            std::to_string(most_beam) + "\" value=\"" + std::to_string(std::min<std::size_t>(5, most_beam)) +
            "\"></label>";
    if (with.has_attention)
        page += "<span class=\"soft\">Arrow keys move from word to word; Enter pins a word, Esc releases it</span>";
    page += "<span class=\"soft\" id=\"state\" role=\"status\" aria-live=\"polite\"></span></div>\n"
            "<div id=\"answers\"></div><noscript>This page requires JavaScript.</noscript></main>\n"
            "<script>";
    page += script;
    return page + "</script>\n</body>\n</html>\n";
}

}  // namespace translation
