// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <string_view>

namespace heed::inline HEED_TARGET::view::detail {

// The first third of the script of html()'s page: its elements, and the words of a card, which shows one system's
// attention to one sentence. The matrix is in page_matrix.hpp, the rest in page_script.hpp; page.hpp describes the
// data.
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

let sentence = -1;      // the current one
let cards = [];
let hover = null, focus = null, pinned = null;  // selections: {card, target, source, dimension}; -1: none
let fullContrast = false;
const hidden = new Set();       // hidden systems
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

// A label that ends at x or, with an angle, begins there and rises. Right-to-left text starts on the right.
const label = (text, x, y, angle) => {
    const rtl = fromRight(text);
    return shape('text', {
        ...(angle ? {class: 'rising', transform: `translate(${x} ${y}) rotate(${-angle})`} : {x, y}),
        'text-anchor': Boolean(angle) === rtl ? 'end' : 'start', ...(rtl ? {direction: 'rtl', 'unicode-bidi': 'embed'} : {}),
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

    // The weight of a word pair in the current view; in the view over target words, the mean.
    weight(j, i) {
        const {S, T} = this.size;
        return this.view.mode === 'one' ? this.all[(this.view.dimension * S + j) * T + i] : this.mean[j * T + i];
    }

    // Choi et al.'s second view: the weight of source word i in dimension d, averaged over the target words.
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
        const reference = this.gold || this.target.length > 0 && this.key === this.pair.reference.join('\0');
        this.targetWords = this.row(reference ? 'Reference' : 'Translation', this.target, 'target');
        if (!this.mean) {
            this.element.append(make('p', {class: 'readout'}, this.target.length ? 'No attention weights.' : 'No translation.'));
            return;
        }
        this.readout = make('p', {class: 'readout live'});
        this.matrix = make('div', {class: 'matrix', role: 'group', 'aria-label': `${this.title}: matrix`});
        this.legend = make('div', {class: 'legend', 'aria-hidden': 'true'});
        this.element.append(this.readout, this.matrix);
        if (D) this.element.append(this.controls());
        this.element.append(this.legend);
        this.matrix.addEventListener('pointermove', event => {
            const at = this.at(event);
            if (!same(at, hover)) { hover = at; paint(); }
        });
        this.matrix.addEventListener('pointerleave', () => { hover = null; paint(); });
        this.matrix.addEventListener('scroll', () => {  // the others show the same columns
            if (!this.place || this.place.over) return;
            for (const card of cards)
                if (card.place && !card.place.over) card.matrix.scrollLeft = this.matrix.scrollLeft;
        });
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
            dir: fromRight(words.join(' ')) ? 'rtl' : 'ltr'});  // not auto, which ignores <bdi>
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
)js";

}  // namespace heed::inline HEED_TARGET::view::detail
