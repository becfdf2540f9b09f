// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace heed::view::detail {

// The first half of the script of html()'s page: what there is on it, and a card, that is, one system's attention to
// one sentence. The second half is in page_script.hpp; the data is described in page.hpp.
inline constexpr std::string_view page_card = R"js(
'use strict';
(() => {
const data = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const root = document.documentElement;
const filled = (element, attributes, children) => {
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
};
const make = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
const shape = (tag, attributes = {}, ...children) =>
    filled(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
const word = text => make('bdi', {}, text);

// ---- weights: two digits of base 64 each; '.' and a digit for a run of zeros; '!!' for not a number

const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const worth = new Uint8Array(128);
for (let i = 0; i < 64; ++i) worth[digits.charCodeAt(i)] = i;
const decoded = (text, count, scale) => {
    const result = new Float32Array(count);
    for (let at = 0, next = 0; at < text.length; at += 2) {
        const low = worth[text.charCodeAt(at + 1)];
        if (text[at] === '.') next += low + 1;
        else if (text[at] === '!') result[next++] = NaN;
        else result[next++] = (worth[text.charCodeAt(at)] * 64 + low) / 4095 * scale;
    }
    return result;
};
const shown = weight => Number.isFinite(weight) ? weight.toFixed(2) : 'not a number';

// ---- state

let sentence = -1;      // which one is shown
let cards = [];
let hover = null, focus = null, pinned = null;  // selections: {card, target, source, dimension}, of which -1 is none
let fullContrast = false;
const hidden = new Set();       // systems that are not to be shown
const views = data.systems.map(() => ({mode: 'mean', dimension: 0}));
const nothing = {card: -1, target: -1, source: -1, dimension: -1};
const selection = () => hover || focus || pinned || nothing;
const same = (a, b) => a && b && Object.keys(nothing).every(key => a[key] === b[key]);

// ---- measuring text, to lay out a matrix

const ruler = document.createElement('canvas').getContext('2d');
const width = text => {
    ruler.font = '13px ' + getComputedStyle(document.body).fontFamily;
    return ruler.measureText(text).width;
};
const cut = (text, most) => {
    if (width(text) <= most) return text;
    const letters = [...text];
    while (letters.length && width(letters.join('') + '…') > most) letters.pop();
    return letters.join('') + '…';
};
const fromRight = text => /^[^\p{L}]*[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u
    .test(text);

// A label that ends at x (or begins there, rising). The start of what is read from right to left is on the right.
const label = (text, x, y, rising) => {
    const rtl = fromRight(text);
    return shape('text', {
        ...(rising ? {transform: `translate(${x} ${y}) rotate(-45)`} : {x, y}),
        'text-anchor': rising === rtl ? 'end' : 'start', ...(rtl ? {direction: 'rtl', 'unicode-bidi': 'embed'} : {}),
    }, text);
};

// ---- a card: one system, or the gold links

class Card {
    constructor(index, pair, out, gold) {
        Object.assign(this, {index, pair, out, gold});
        this.title = gold ? 'Gold alignment' : data.systems[index];
        this.view = gold || !out.kept ? {mode: 'mean', dimension: 0} : views[index];
        this.source = pair.source;
        this.target = out.words;
        this.key = this.target.join('\0');
        const [S, T, D] = [this.target.length, this.source.length, out.kept || 0];
        this.size = {S, T, D};
        if (gold) {
            this.mean = new Float32Array(S * T);
            for (const [i, j] of pair.possible) this.mean[j * T + i] = 0.4;
            for (const [i, j] of pair.sure) this.mean[j * T + i] = 1;
        } else if (out.mean !== undefined) {
            this.mean = decoded(out.mean, S * T, out.scale);
        }
        if (D) {
            this.all = decoded(out.all, S * T * D, out.scale);  // [D,S,T]
            this.view.dimension = Math.min(this.view.dimension, D - 1);
        }
        this.build();
    }

    // The weight of a word pair in the present view; over the target words, the pairs are shown as their mean.
    weight(j, i) {
        const {S, T} = this.size;
        return this.view.mode === 'one' ? this.all[(this.view.dimension * S + j) * T + i] : this.mean[j * T + i];
    }

    // Choi et al.'s second view: what dimension d takes from source word i, averaged over the target words.
    over(i, d) {
        const {S, T} = this.size;
        let sum = 0;
        for (let j = 0; j < S; ++j) sum += this.all[(d * S + j) * T + i];
        return sum / S;
    }

    build() {
        const {D} = this.size;
        this.element = make('section', {class: this.gold ? 'card gold' : 'card', 'aria-label': this.title});
        this.element.append(make('div', {class: 'head'}, make('h3', {dir: 'auto'}, this.title),
            make('span', {class: 'soft', dir: 'auto'}, this.out.note || '')));
        this.sourceWords = this.row('Source', this.source, 'source');
        this.targetWords = this.row(this.gold || this.key === this.pair.reference.join('\0') ? 'Reference' : 'Translation',
            this.target, 'target');
        if (!this.mean) {
            this.element.append(make('p', {class: 'readout'}, this.target.length ? 'No attention weights.' : 'No translation.'));
            return;
        }
        this.readout = make('p', {class: 'readout live'});
        this.matrix = make('div', {class: 'matrix'});
        this.legend = make('div', {class: 'legend', 'aria-hidden': 'true'});
        this.element.append(this.readout, this.matrix);
        if (D) this.element.append(this.controls());
        this.element.append(this.legend);
        this.matrix.addEventListener('pointermove', event => {
            const at = this.at(event);
            if (!same(at, hover)) { hover = at; paint(); }
        });
        this.matrix.addEventListener('pointerleave', () => { hover = null; paint(); });
        this.matrix.addEventListener('click', event => {
            const at = this.at(event);
            if (!at) return;
            if (at.dimension >= 0) {
                this.view.dimension = at.dimension;
                this.view.mode = 'one';
                hover = null;
                this.syncControls();
                this.draw();
                paint();
            } else pin(at);
        });
    }

    row(title, words, side) {
        const list = make('div', {class: 'words', role: 'group', 'aria-label': `${this.title}: ${title}`,
            dir: fromRight(words.join(' ')) ? 'rtl' : 'ltr'});  // not auto: that does not look into <bdi>
        words.forEach((text, position) => {
            const button = make('button', {type: 'button', tabindex: position ? -1 : 0, 'aria-pressed': false}, word(text));
            const chosen = () => ({...nothing, card: this.index, [side]: position});
            button.addEventListener('pointerenter', () => { hover = chosen(); paint(); });
            button.addEventListener('pointerleave', () => { hover = null; paint(); });
            button.addEventListener('focus', () => {
                for (const other of list.children) other.tabIndex = other === button ? 0 : -1;
                focus = chosen();
                paint(true);
            });
            button.addEventListener('blur', () => { focus = null; paint(); });
            button.addEventListener('click', () => pin(chosen()));
            list.append(button);
        });
        list.addEventListener('keydown', event => {
            const all = [...list.children], here = all.indexOf(event.target);
            const forwards = getComputedStyle(list).direction === 'rtl' ? 'ArrowLeft' : 'ArrowRight';
            const next = {ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: all.length - 1}[event.key];
            if (next === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
            const step = event.key.startsWith('Arrow') ? (event.key === forwards ? here + 1 : here - 1) : next;
            all[Math.max(0, Math.min(all.length - 1, step))].focus();
            event.preventDefault();
        });
        this.element.append(make('span', {class: 'role'}, title), list);
        return [...list.children];
    }

    controls() {
        const {D} = this.size, name = data.dimension;
        const choices = make('fieldset', {}, make('legend', {class: 'unseen'}, `${this.title}: view`));
        for (const [mode, text] of [['mean', `Mean over ${name}s`], ['over', 'Mean over target words'], ['one', `One ${name}`]]) {
            const input = make('input', {type: 'radio', name: `view${this.index}`, value: mode});
            input.addEventListener('change', () => { this.view.mode = mode; this.syncControls(); this.draw(); paint(); });
            choices.append(make('label', {}, input, make('span', {}, text)));
        }
        const range = make('input', {type: 'range', min: 0, max: D - 1, step: 1, 'aria-label': `${this.title}: ${name}`});
        range.addEventListener('input', () => {
            this.view.dimension = Number(range.value);
            this.syncControls();
            if (this.view.mode === 'one') this.draw();
            paint();
        });
        this.inputs = {choices, range, output: make('output')};
        this.slider = make('label', {class: 'slider'}, range, this.inputs.output);
        this.syncControls();
        return make('div', {class: 'views'}, choices, this.slider);
    }

    syncControls() {
        const {D} = this.size, {choices, range, output} = this.inputs, at = this.view.dimension;
        for (const input of choices.querySelectorAll('input')) input.checked = input.value === this.view.mode;
        this.slider.hidden = this.view.mode === 'mean';
        range.value = at;
        const text = `${data.dimension} ${at + 1} of ${D}`;
        range.setAttribute('aria-valuetext', text);
        output.textContent = text;
    }

    // ---- the matrix

    draw() {
        if (!this.mean) return;
        const {S, T, D} = this.size, over = this.view.mode === 'over';
        const columns = over ? D : T, wide = this.matrix.clientWidth;
        const room = Math.max(60, Math.min(150, 0.27 * wide)), source = this.source.map(text => cut(text, room));
        const rows = over ? source : this.target.map(text => cut(text, room));
        const value = over ? (i, d) => this.over(i, d) : (j, i) => this.weight(j, i);
        const longest = Math.max(0, ...rows.map(width));
        let left = Math.ceil(longest + 12);
        const reach = source.map(text => 0.7072 * (width(text) + 13));  // labels rise at 45 degrees
        let cell = Math.min(26, (wide - left - (over ? 14 : 4)) / Math.max(1, columns));
        if (!over) reach.forEach((length, i) => { cell = Math.min(cell, (wide - left - 2 - length) / (i + 0.5)); });
        cell = over ? Math.max(4, cell) : Math.max(11, Math.floor(cell));
        const size = over ? 13 : Math.min(13, cell - 1), scale = size / 13;
        left = Math.ceil(scale * longest + 12);
        const top = over ? 20 : Math.ceil(scale * Math.max(0, ...reach) + 8);
        const high = over ? Math.max(18, cell) : cell;  // a row has a word, a column of a dimension has none
        const gap = cell > 9 ? 2 : 1, side = cell - gap, corner = Math.min(3, side / 4);
        const square = (c, r) => ({x: c * cell + gap / 2, y: r * high + gap / 2, width: side, height: high - gap, rx: corner});
        const right = over ? columns * cell + 12 : Math.max(columns * cell, ...reach.map((length, i) => (i + 0.5) * cell + scale * length));
        this.place = {left, top, cell, high, rows: rows.length, columns, over};

        const svg = shape('svg', {width: Math.ceil(left + right + 2), height: top + rows.length * high + 2, role: 'img',
            style: `--size: ${size}px; --mark: ${Math.min(2, cell / 9)}px`});
        svg.setAttribute('aria-label', this.title + (over ? `: mean over the target words, source words by ${data.dimension}s`
            : ': target words by source words'));
        const field = shape('g', {transform: `translate(${left} ${top})`});
        this.rowLabels = rows.map((text, r) => label(text, -9, (r + 0.5) * high + 0.35 * size, false));
        this.columnLabels = over ? [] : source.map((text, c) => label(text, (c + 0.5) * cell + 3, -6, true));
        if (over) {
            const every = [1, 5, 10, 20, 25, 50, 100, 250].find(step => step * cell >= 30) || 500;
            for (let d = 0; d < D; ++d)
                if (d === 0 || (d + 1) % every === 0)
                    field.append(shape('text', {class: 'small', x: (d + 0.5) * cell, y: -6, 'text-anchor': 'middle'}, d + 1));
        }
        const weights = [];
        let most = 0;
        for (let r = 0; r < rows.length; ++r)
            for (let c = 0; c < columns; ++c) {
                weights.push(value(r, c));
                if (weights[weights.length - 1] > most) most = weights[weights.length - 1];
            }
        this.most = fullContrast && !this.gold && most > 0 && most < Infinity ? most : 1;
        let paper = '';
        const ink = [];
        for (let r = 0, n = 0; r < rows.length; ++r)
            for (let c = 0; c < columns; ++c, ++n) {
                const box = square(c, r), weight = weights[n] / this.most;
                paper += `M${box.x} ${box.y}h${side}v${box.height}h-${side}z`;
                if (weight < 0.004) continue;
                ink.push(shape('rect', {class: Number.isFinite(weight) ? 'ink' : 'bad', ...box,
                    ...(weight < 1 ? {'fill-opacity': weight.toFixed(3)} : {})}));
            }
        field.append(shape('path', {class: 'paper', d: paper}), ...ink);
        if (!over && !this.gold && this.marked()) {
            const sure = new Set(this.pair.sure.map(String));
            const mark = kind => ([i, j]) => field.append(shape('rect', {class: kind, ...square(i, j)}));
            this.pair.possible.filter(link => !sure.has(String(link))).forEach(mark('possible'));
            this.pair.sure.forEach(mark('sure'));
        }
        this.bands = [shape('rect', {class: 'band'}), shape('rect', {class: 'band'})];
        field.append(...this.rowLabels, ...this.columnLabels, ...this.bands);
        svg.append(field);
        this.matrix.replaceChildren(svg);
        this.writeLegend(over);
    }

    // Gold links belong to the reference: they are marked where its words are this card's.
    marked() {
        return this.pair.sure.length + this.pair.possible.length > 0 && this.key === this.pair.reference.join('\0');
    }

    writeLegend(over) {
        const item = (kind, text) => make('span', {}, make('i', {class: kind}), text);
        if (this.gold) {
            this.legend.replaceChildren(item('full', 'sure'), item('part', 'possible'));
            return;
        }
        this.legend.replaceChildren(make('span', {}, '0', make('i', {class: 'scale'}), this.most === 1 ? '1' : shown(this.most)));
        if (!over && this.marked()) this.legend.append(item('sure', 'gold: sure'), item('possible', 'possible'));
        const {D} = this.size, all = this.out.dimensions;
        if (all > D && this.view.mode === 'mean') this.legend.append(make('span', {}, `mean over all ${all} ${data.dimension}s`));
        if (all > D && this.view.mode !== 'mean') this.legend.append(make('span', {}, `the first ${D} of ${all} ${data.dimension}s`));
    }

    // The selection under the pointer.
    at(event) {
        const svg = this.matrix.firstChild;
        if (!svg) return null;
        const box = svg.getBoundingClientRect(), {left, top, cell, high, rows, columns, over} = this.place;
        const r = Math.floor((event.clientY - box.top - top) / high), c = Math.floor((event.clientX - box.left - left) / cell);
        if (r >= rows || c >= columns || c < 0 && r < 0) return null;
        const row = Math.max(r, -1), column = Math.max(c, -1);
        if (over) return column < 0 ? null : {...nothing, card: this.index, source: row, dimension: column};
        return {...nothing, card: this.index, target: row, source: column};
    }

    // ---- showing what is selected

    paint(chosen) {
        const {S, T, D} = this.size, own = chosen.card === this.index;
        let {target, source, dimension} = chosen;
        const over = this.mean && this.view.mode === 'over';
        if (target >= 0 && !own && (cards.find(card => card.index === chosen.card) || {}).key !== this.key)
            target = source = -1;  // other words: its positions say nothing here
        if (dimension >= 0 && !own) dimension = source = -1;
        if (over && own === false || over && dimension < 0) dimension = this.view.dimension;
        const byDimension = over && target < 0 && (source < 0 || own && chosen.dimension >= 0);

        this.sourceWords.forEach((button, i) => {
            let weight = 0;
            if (this.mean && target >= 0) weight = this.weight(target, i);
            else if (byDimension) weight = this.over(i, dimension);
            this.shade(button, weight, i === source, pinned && pinned.source === i && this.holds(pinned));
        });
        this.targetWords.forEach((button, j) => {
            const weight = this.mean && target < 0 && source >= 0 && !byDimension ? this.weight(j, source) : 0;
            this.shade(button, weight, j === target, pinned && pinned.target === j && this.holds(pinned));
        });
        if (!this.mean) return;

        const {cell, high, rows, columns} = this.place;
        const row = over ? source : target, column = over ? dimension : source;
        this.rowLabels.forEach((text, r) => text.classList.toggle('on', r === row));
        this.columnLabels.forEach((text, c) => text.classList.toggle('on', c === column));
        const band = (rect, shownAt, x, y, w, h) => {
            rect.setAttribute('visibility', shownAt >= 0 ? 'visible' : 'hidden');
            for (const [name, size] of Object.entries({x, y, width: w, height: h, rx: 4})) rect.setAttribute(name, size);
        };
        band(this.bands[0], row, -1, row * high - 0.5, columns * cell + 2, high + 1);
        band(this.bands[1], column, column * cell - 0.5, -1, cell + 1, rows * high + 2);
        this.say(target, source, byDimension ? dimension : -1);
    }

    holds(chosen) { return chosen.card === this.index; }

    shade(button, weight, chosen, pressed) {
        const amount = Number.isFinite(weight) ? Math.max(0, Math.min(1, weight / (this.most || 1))) : 0;
        button.style.setProperty('--w', amount.toFixed(3));
        button.classList.toggle('shaded', amount >= 0.05);
        button.classList.toggle('half', amount >= 0.55);
        button.classList.toggle('deep', amount >= 0.8);
        button.classList.toggle('chosen', chosen);
        button.setAttribute('aria-pressed', Boolean(pressed));
    }

    // In words: "Hund ← dog 0.91  a 0.05".
    say(target, source, dimension) {
        const mark = weight => this.gold ? (weight === 1 ? 'sure' : weight > 0 ? 'possible' : 'no link') : shown(weight);
        const pairs = (texts, weight) => {
            const all = texts.map((text, n) => [text, weight(n)]).filter(([, w]) => !(w < 0.005));
            all.sort((a, b) => b[1] - a[1]);
            if (!all.length) return ['nothing'];
            const parts = all.slice(0, 4).flatMap(([text, w]) => [make('span', {class: 'pair'}, word(text), ' ', make('b', {}, mark(w))), ' ']);
            return all.length > 4 ? [...parts, '…'] : parts;
        };
        const strong = text => make('b', {}, word(text));
        let parts;
        if (target >= 0 && source >= 0)
            parts = [strong(this.target[target]), ' ← ', word(this.source[source]), ' ', make('b', {}, mark(this.weight(target, source)))];
        else if (target >= 0)
            parts = [strong(this.target[target]), ' ← ', ...pairs(this.source, i => this.weight(target, i))];
        else if (dimension >= 0 && source >= 0)
            parts = [`${data.dimension} ${dimension + 1} ← `, word(this.source[source]), ' ',
                make('b', {}, shown(this.over(source, dimension)))];
        else if (dimension >= 0)
            parts = [`${data.dimension} ${dimension + 1} ← `, ...pairs(this.source, i => this.over(i, dimension))];
        else if (source >= 0)
            parts = [strong(this.source[source]), ' → ', ...pairs(this.target, j => this.weight(j, source))];
        else
            parts = [this.gold ? 'Sure and possible links.' : 'Point at a word to see where the attention is.'];
        this.readout.replaceChildren(...parts);
    }
}
)js";

}  // namespace heed::view::detail
