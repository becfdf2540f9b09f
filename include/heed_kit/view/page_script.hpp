// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <string_view>

namespace heed::inline HEED_TARGET::view::detail {

// The last third of the script of html()'s page: choosing a sentence and the view.
inline constexpr std::string_view page_script = R"js(
const pin = chosen => {
    pinned = same(pinned, chosen) ? null : chosen;
    paint(true);
};

// Screen readers announce the selection once it has been stable for 150 ms.
let soon = 0;
const paint = aloud => {
    const chosen = selection();
    for (const card of cards) card.paint(chosen);
    if (!aloud) return;
    clearTimeout(soon);
    soon = setTimeout(() => {
        const card = cards.find(each => each.index === selection().card);
        if (card && card.readout) $('status').textContent = card.readout.textContent;
    }, 150);
};

const redraw = () => {
    layout = layOut();
    for (const card of cards) card.draw();
    paint();
};

// ---- the sentence

// A source without its end mark, which appears only in the matrix.
const plain = words => words.length && words[words.length - 1] === data.end ? words.slice(0, -1) : words;

let settled = 0;
const show = index => {
    const pair = data.sentences[index];
    sentence = index;
    hover = focus = pinned = null;
    $('where').textContent = `Sentence ${index + 1} of ${data.sentences.length}`;
    $('previous').disabled = index === 0;
    $('next').disabled = index === data.sentences.length - 1;
    for (const item of $('list').children) item.setAttribute('aria-selected', Number(item.dataset.sentence) === index);
    const item = $('list').children[index];
    $('list').setAttribute('aria-activedescendant', item.id);
    // Scrolls within the list; the page does not scroll.
    const list = $('list'), from = item.offsetTop - list.offsetTop, to = from + item.offsetHeight;
    if (from < list.scrollTop) list.scrollTop = from - 2;
    else if (to > list.scrollTop + list.clientHeight) list.scrollTop = to - list.clientHeight + 2;

    const gold = pair.sure.length + pair.possible.length > 0;
    $('reference').replaceChildren();
    if (!gold && pair.reference.length)
        $('reference').append(make('span', {class: 'role'}, 'Reference'), make('bdi', {}, pair.reference.join(' ')));
    cards = [];
    if (gold && !hidden.has(-2)) cards.push(new Card(-2, pair, {words: pair.reference}, true));
    pair.systems.forEach((out, k) => { if (!hidden.has(k)) cards.push(new Card(k, pair, out, false)); });
    // Long sentences get wider cards, and fewer fit side by side.
    $('cards').style.setProperty('--least', `${Math.max(270, Math.min(440, 140 + 16 * pair.source.length))}px`);
    $('cards').replaceChildren(...cards.map(card => card.element));
    redraw();
    clearTimeout(settled);  // browsers reject frequent changes of the address, as when a key is held down
    settled = setTimeout(() => {
        try { history.replaceState(null, '', '#' + (index + 1)); } catch { /* some browsers reject it for files */ }
    }, 200);
};

const visible = () => [...$('list').children].filter(item => !item.hidden).map(item => Number(item.dataset.sentence));
const step = by => {
    const all = visible();
    if (!all.length) return;
    const here = all.indexOf(sentence);
    show(all[here < 0 ? 0 : Math.max(0, Math.min(all.length - 1, here + by))]);
};

data.sentences.forEach((pair, index) => {
    const item = make('li', {role: 'option', id: `sentence${index}`, 'data-sentence': index, 'aria-selected': false},
        make('span', {class: 'n'}, index + 1), make('span', {class: 'w', dir: 'auto'}, plain(pair.source).join(' ')));
    item.addEventListener('click', () => show(index));
    $('list').append(item);
});
$('list').addEventListener('keydown', event => {
    const by = {ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -1e9, End: 1e9}[event.key];
    if (!by || event.ctrlKey || event.altKey || event.metaKey) return;
    step(by);
    event.preventDefault();
});
$('filter').addEventListener('input', () => {
    const wanted = $('filter').value.trim().toLowerCase();
    for (const item of $('list').children) {
        const pair = data.sentences[item.dataset.sentence];
        const texts = [plain(pair.source), pair.reference, ...pair.systems.map(out => out.words)];
        item.hidden = !texts.some(words => words.join(' ').toLowerCase().includes(wanted));
    }
    const all = visible();
    if (all.length && !all.includes(sentence)) show(all[0]);
});
const showKeys = open => {
    $('help').hidden = !open;
    $('keys').setAttribute('aria-expanded', open);
};
$('keys').addEventListener('click', () => showKeys($('help').hidden));
$('previous').addEventListener('click', () => step(-1));
$('next').addEventListener('click', () => step(1));
document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.type === 'search') return;
    if (event.key === 'n' || event.key === 'p') step(event.key === 'n' ? 1 : -1);
    if (event.key === '?') showKeys($('help').hidden);
    if (event.key === 'Escape') {
        showKeys(false);
        pinned = null;
        paint();
    }
});

// ---- visible systems and colors

const gold = data.sentences.some(pair => pair.sure.length + pair.possible.length > 0);
for (const [k, name] of [...(gold ? [[-2, 'Gold']] : []), ...data.systems.entries()]) {
    const button = make('button', {class: 'button', type: 'button', 'aria-pressed': true}, word(name));
    button.addEventListener('click', () => {
        if (!hidden.delete(k)) hidden.add(k);
        button.setAttribute('aria-pressed', !hidden.has(k));
        show(sentence);
    });
    $('systems').append(button);
}
$('systems').hidden = $('systems').children.length < 2;
$('contrast').addEventListener('change', () => { fullContrast = $('contrast').checked; redraw(); });

const dark = matchMedia('(prefers-color-scheme: dark)');
const remembered = () => { try { return localStorage.getItem('heed-theme') || 'auto'; } catch { return 'auto'; } };
let theme = remembered();
const setTheme = () => {
    root.dataset.theme = theme === 'auto' ? (dark.matches ? 'dark' : 'light') : theme;
    $('theme').textContent = {auto: '◐ Auto', light: '☀ Light', dark: '☾ Dark'}[theme];
    $('theme').setAttribute('aria-label', `Colors: ${theme}`);
};
dark.addEventListener('change', setTheme);
$('theme').addEventListener('click', () => {
    theme = {auto: 'light', light: 'dark', dark: 'auto'}[theme];
    try { localStorage.setItem('heed-theme', theme); } catch { /* not stored */ }
    setTheme();
});
setTheme();

// The list of sentences ends at the bottom of the window.
const header = document.querySelector('header');
new ResizeObserver(() => root.style.setProperty('--head', `${header.offsetHeight}px`)).observe(header);

let lastWidth = 0;
new ResizeObserver(() => {
    const now = $('cards').clientWidth;
    if (now === lastWidth) return;
    lastWidth = now;
    requestAnimationFrame(redraw);  // not during layout
}).observe($('cards'));

if (data.sentences.length)
    show(Math.max(0, Math.min(data.sentences.length, parseInt(location.hash.slice(1)) || 1) - 1));
else {
    $('where').textContent = 'No sentences';
    $('previous').disabled = $('next').disabled = true;
}
})();
)js";

}  // namespace heed::inline HEED_TARGET::view::detail
