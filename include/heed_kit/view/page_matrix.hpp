// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <string_view>

namespace heed::inline HEED_TARGET::view::detail {

// The second third of the script of html()'s page: the second half of the class Card, which draws its matrix and shows
// the selection, and the layout of matrices. The first third is in page_card.hpp.
inline constexpr std::string_view page_matrix = R"js(
    // ---- the matrix

    draw() {
        if (!this.mean) return;
        const {S, T, D} = this.size, over = this.view.mode === 'over';
        const place = over ? layoutOver(this) : layout, {left, top, cell, high, size, angle, source} = place;
        const columns = over ? D : T, rows = over ? source : this.target.map(text => cut(text, place.room));
        const value = over ? (i, d) => this.over(i, d) : (j, i) => this.weight(j, i);
        this.place = {...place, rows: rows.length, columns, over};

        // Edges are at whole pixels, though cells may be 14.3 wide: all the space is used without blur.
        const gap = cell > 9 ? 2 : 1, edge = c => Math.round(c * cell);
        const square = (c, r) => {
            const side = edge(c + 1) - edge(c) - gap;
            return {x: edge(c) + gap / 2, y: r * high + gap / 2, width: side, height: high - gap, rx: Math.min(3, side / 4)};
        };
        const height = top + rows.length * high + 2, style = `--size: ${size}px; --mark: ${Math.min(2, cell / 9)}px`;
        const svg = shape('svg', {width: place.width - left, height, role: 'img', style});
        svg.setAttribute('aria-label', this.title + (over ? `: mean over the target words, source words by ${data.dimension}s`
            : ': target words by source words'));
        const field = shape('g', {transform: `translate(2 ${top})`}), names = shape('g', {transform: `translate(${left} ${top})`});
        this.rowLabels = rows.map((text, r) => label(text, -9, (r + 0.5) * high + 0.35 * size, 0));
        this.columnLabels = over ? [] : source.map((text, c) => label(text, (c + 0.5) * cell + (angle < 90 ? 3 : 0.35 * size), -6, angle));
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
                paper += `M${box.x} ${box.y}h${box.width}v${box.height}h-${box.width}z`;
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
        field.append(...this.columnLabels, ...this.bands);
        names.append(...this.rowLabels);
        svg.append(field);
        // The target words do not scroll.
        this.names = shape('svg', {class: 'names', width: left, height, style, 'aria-hidden': true}, names);
        this.field = svg;
        const scrolled = this.matrix.scrollLeft;
        this.matrix.replaceChildren(this.names, svg);
        this.matrix.scrollLeft = scrolled;
        if (place.width > this.matrix.clientWidth) this.matrix.tabIndex = 0;  // for scrolling with the keys
        else this.matrix.removeAttribute('tabindex');
        this.writeLegend(over);
    }

    // Scrolls a column into view.
    reveal(column) {
        const {left, cell} = this.place, {scrollLeft, clientWidth} = this.matrix, from = column * cell;
        if (from < scrollLeft) this.matrix.scrollLeft = from - cell;
        else if (left + from + cell > scrollLeft + clientWidth) this.matrix.scrollLeft = left + from + 2 * cell - clientWidth;
    }

    // Gold links refer to the reference: they are marked if this card has the same words.
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
        if (!this.field) return null;
        const box = this.field.getBoundingClientRect(), {top, cell, high, rows, columns, over} = this.place;
        const named = event.clientX < this.names.getBoundingClientRect().right;
        const r = Math.floor((event.clientY - box.top - top) / high), c = named ? -1 : Math.floor((event.clientX - box.left - 2) / cell);
        if (r >= rows || c >= columns || c < 0 && r < 0) return null;
        const row = Math.max(r, -1), column = Math.max(c, -1);
        if (over) return column < 0 ? null : {...nothing, card: this.index, source: row, dimension: column};
        return {...nothing, card: this.index, target: row, source: column};
    }

    // ---- showing the selection

    paint(chosen) {
        const {S, T, D} = this.size, own = chosen.card === this.index;
        let {target, source, dimension} = chosen;
        const over = this.mean && this.view.mode === 'over';
        if (target >= 0 && !own && (cards.find(card => card.index === chosen.card) || {}).key !== this.key)
            target = source = -1;  // other words: its positions have no meaning here
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
        if (column >= 0 && !hover && (focus || pinned)) this.reveal(column);
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
            parts = [this.gold ? 'Sure and possible links.' : 'Point at a word to see its attention.'];
        this.readout.replaceChildren(...parts);
    }
}

// ---- the layout of a matrix

// All matrices of a sentence have the same layout, for comparison: the space for the target words on the left,
// the side of a cell, and the placement of the source words above their columns.
let layout = null;
const leastCell = 13, mostCell = 26, leastSize = 11, mostSize = 13;
const measures = (wide, names, room) => {
    const texts = names.map(text => cut(text, room)), longest = Math.max(0, ...texts.map(width));
    return {wide, room, left: size => Math.ceil(1.07 * longest * size / 13) + 12};  // the selected word is bold
};
const roomFor = wide => Math.max(60, Math.min(150, 0.27 * wide));

const layOut = () => {
    const drawn = cards.filter(card => card.mean);
    if (!drawn.length) return null;
    const wide = Math.min(...drawn.map(card => card.matrix.clientWidth)), room = roomFor(wide);
    const {left} = measures(wide, drawn.flatMap(card => card.target), room);
    const source = drawn[0].source.map(text => cut(text, room)), lengths = source.map(width), T = source.length;
    const done = (size, cell, angle) => {
        const reach = length => angle < 90 ? 0.7072 * (length + 13) * size / 13 : 0.5 * cell;
        const right = Math.max(T * cell, ...lengths.map((length, i) => (i + 0.5) * cell + reach(length)));
        const top = Math.max(0, ...lengths) * size / 13 * (angle < 90 ? 0.7072 : 1.07) + (angle < 90 ? 0.7072 * size : 2);
        return {left: left(size), top: Math.ceil(top + 8), width: Math.ceil(left(size) + right + 4), cell,
            high: Math.floor(cell), size, angle, source, room};
    };
    // At 45 degrees, lines are 0.71 cells apart, and extend beyond the last column. There must be space for the letters.
    let cell = Math.min(mostCell, (wide - left(mostSize) - 4) / T);
    lengths.forEach((length, i) => { cell = Math.min(cell, (wide - left(mostSize) - 4 - 0.7072 * (length + 13)) / (i + 0.5)); });
    if (0.7 * cell >= mostSize) return done(mostSize, cell, 45);
    // Upright lines are a whole cell apart. If that is too narrow even for small letters, the card scrolls.
    for (let size = mostSize; size >= leastSize; size -= 0.5) {
        cell = Math.min(mostCell, (wide - left(size) - 4) / T);
        if (cell >= size + 2) return done(size, cell, 90);
    }
    return done(leastSize, leastCell, 90);
};

// Source words by dimensions, which have only numbers.
const layoutOver = card => {
    const wide = card.matrix.clientWidth, room = roomFor(wide), size = mostSize, columns = card.size.D;
    const left = measures(wide, card.source, room).left(size), cell = Math.max(4, Math.min(mostCell, (wide - left - 16) / columns));
    return {left, top: 20, width: Math.ceil(left + columns * cell + 14), cell, high: Math.max(18, Math.floor(cell)), size, angle: 0,
        source: card.source.map(text => cut(text, room)), room};
};
)js";

}  // namespace heed::inline HEED_TARGET::view::detail
