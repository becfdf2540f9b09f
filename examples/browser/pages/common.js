// SPDX-License-Identifier: BSD-3-Clause
//
// Shared by the pages: light and dark, elements, and matrices of weights.

'use strict';

const $ = id => document.getElementById(id);

/// An element: make('p', {class: 'soft'}, 'text', child, …); attributes that are null or false are omitted.
function make(name, attributes = {}, ...children) {
    const svg = ['svg', 'g', 'path', 'line', 'circle', 'text', 'title'].includes(name);
    const element = svg ? document.createElementNS('http://www.w3.org/2000/svg', name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
        if (value !== null && value !== false) element.setAttribute(key, value === true ? '' : value);
    }
    element.append(...children.filter(child => child !== null));
    return element;
}

/// An equation: _j, _{k<t} and ^{…} are lowered and raised.
function equation(text) {
    const place = make('span');
    let last = 0;
    for (const found of text.matchAll(/([_^])(?:\{([^}]*)\}|([\p{L}\d]))/gu)) {
        place.append(text.slice(last, found.index), make(found[1] === '_' ? 'sub' : 'sup', {}, found[2] ?? found[3]));
        last = found.index + found[0].length;
    }
    place.append(text.slice(last));
    return place;
}

// Light and dark: the system setting until the user chooses.
{
    const system = matchMedia('(prefers-color-scheme: dark)');
    let chosen = new URLSearchParams(location.search).get('theme');  // of the enclosing page
    if (chosen === null) {
        try {
            chosen = localStorage.getItem('heed-theme');
        } catch { /* no storage from the disk in some browsers */ }
    }
    if (!['light', 'dark'].includes(chosen)) chosen = null;
    const now = () => chosen || (system.matches ? 'dark' : 'light');
    const show = () => {
        document.documentElement.dataset.theme = now();
        const button = $('theme');
        if (button) {
            button.textContent = now() === 'dark' ? 'Light' : 'Dark';
            button.setAttribute('aria-label', now() === 'dark' ? 'Use light colors' : 'Use dark colors');
        }
    };
    show();
    system.addEventListener('change', show);
    addEventListener('message', event => {
        if (event.source !== window.parent || event.data?.heed !== 'theme') return;
        chosen = ['light', 'dark'].includes(event.data.theme) ? event.data.theme : null;
        show();
    });
    addEventListener('DOMContentLoaded', () => {
        show();
        $('theme').addEventListener('click', () => {
            chosen = now() === 'dark' ? 'light' : 'dark';
            try {
                localStorage.setItem('heed-theme', chosen);
            } catch { /* kept for this page alone */ }
            show();
        });
    });
}

// An embedded page shows only its main content.
document.documentElement.classList.toggle('embedded', new URLSearchParams(location.search).has('embed'));

// The enclosing page sets the height.
addEventListener('DOMContentLoaded', () => {
    if (window.parent !== window)
        new ResizeObserver(() => parent.postMessage({heed: 'height', height: Math.ceil(document.body.getBoundingClientRect().height)}, '*')).observe(document.body);
});

const share = weight => Math.max(0, Math.min(1, weight ?? 0));

/// Draws weights [rows][columns] as a table in `place`; if the words are unchanged, only the shades change. Returns the
/// rows of the table.
function drawMatrix(place, {columns, rows, weights, caption}) {
    const words = JSON.stringify([columns, rows, caption]);
    if (place.dataset.words !== words) {
        place.dataset.words = words;
        place.style.setProperty('--columns', columns.length);  // narrower cells instead of scrolling
        const head = make('tr', {}, make('td', {style: 'background: none'}),
            ...columns.map(word => make('th', {scope: 'col', class: word === '</s>' ? 'end' : null}, make('span', {}, word))));
        const body = rows.map(word => make('tr', {},
            make('th', {scope: 'row', class: word === '</s>' ? 'end' : null}, word), ...columns.map(() => make('td'))));
        place.replaceChildren(make('table', {}, make('caption', {class: 'unseen'}, caption), make('thead', {}, head),
            make('tbody', {}, ...body)));
    }
    const lines = [...place.querySelectorAll('tbody tr')];
    lines.forEach((line, s) => line.querySelectorAll('td').forEach((cell, t) => {
        const weight = weights[s * columns.length + t];
        cell.style.setProperty('--w', share(weight).toFixed(3));
        cell.dataset.value = weight ?? '';
        cell.title = `${rows[s]} ← ${columns[t]} ${weight === undefined || weight === null ? '–' : weight.toFixed(2)}`;
    }));
    return lines;
}

const canRun = () => typeof WebAssembly === 'object' && typeof heed_module === 'function';
