// SPDX-License-Identifier: BSD-3-Clause
//
// Appended to the sample page: uses it as a reader would, and writes failures to #result.

(async () => {
'use strict';
const failures = [];
let checks = 0;
const check = (value, what) => {
    ++checks;
    if (!value) failures.push(what);
};
const equal = (is, should, what) => check(is === should, `${what}: ${JSON.stringify(is)}, should be ${JSON.stringify(should)}`);
const moment = time => new Promise(done => setTimeout(done, time));
const $ = id => document.getElementById(id);
const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
const cards = () => all('.card');
const card = title => cards().find(each => each.querySelector('h3').textContent === title);
const source = title => all('button', all('.words', card(title))[0]);
const target = title => all('button', all('.words', card(title))[1]);
const shade = button => Number(button.style.getPropertyValue('--w'));
const readout = title => card(title).querySelector('.readout').textContent.trim();
const enter = element => element.dispatchEvent(new PointerEvent('pointerenter'));
const leave = element => element.dispatchEvent(new PointerEvent('pointerleave'));
const key = (element, name) => element.dispatchEvent(new KeyboardEvent('keydown', {key: name, bubbles: true, cancelable: true}));
const pointAt = (title, row, column, kind = 'pointermove') => {  // as fractions of the numbers of rows and columns
    const matrix = card(title).querySelector('.matrix'), box = matrix.querySelector('.paper').getBoundingClientRect();
    matrix.dispatchEvent(new PointerEvent(kind, {bubbles: true, clientX: box.left + box.width * (column[0] + 0.5) / column[1],
        clientY: box.top + box.height * (row[0] + 0.5) / row[1]}));
};
const ink = title => all('.ink', card(title)).map(cell => cell.getAttribute('fill-opacity')).join(' ');
const choose = (title, mode) => card(title).querySelector(`input[value=${mode}]`).click();
const slide = (title, dimension) => {
    const range = card(title).querySelector('input[type=range]');
    range.value = dimension - 1;
    range.dispatchEvent(new Event('input', {bubbles: true}));
};
const go = number => { key($('list'), 'Home'); for (let i = 1; i < number; ++i) key($('list'), 'ArrowDown'); };
const where = () => $('where').textContent;

try {
    const list = all('#list li'), count = list.length;
    equal(count, 17, 'sentences in the list');
    equal(where(), 'Sentence 1 of 17', 'the first sentence');
    equal(cards().map(each => each.querySelector('h3').textContent).join(), 'Gold alignment,additive,fine-grained', 'cards');

    // A target word shades the source words in each card with the same words, and the shading is removed completely.
    enter(target('additive')[2]);
    check(shade(source('additive')[2]) > 0.8, 'dog is shaded for Hund');
    check(shade(source('additive')[7]) < 0.1, 'grass is not');
    check(readout('additive').startsWith('Hund ← dog 0.'), `readout of Hund: ${readout('additive')}`);
    check(shade(source('fine-grained')[2]) > 0.3, 'the other system shows the same word');
    equal(readout('Gold alignment'), 'Hund ← dog sure', 'gold');
    check(target('additive')[2].classList.contains('chosen'), 'Hund is marked');
    leave(target('additive')[2]);
    check(source('additive').every(button => shade(button) === 0), 'no shade without a pointer');
    enter(target('Gold alignment')[4]);
    equal(readout('Gold alignment'), 'über ← runs possible across possible', 'possible links');
    leave(target('Gold alignment')[4]);

    // A source word shades the target words.
    enter(source('additive')[1]);
    check(shade(target('additive')[1]) > 0.8 && shade(source('additive')[1]) === 0, 'small shades kleiner');
    check(readout('additive').startsWith('small → kleiner'), 'the readout of a source word');
    leave(source('additive')[1]);

    // A click pins a word; Escape, or another click, unpins it.
    target('additive')[0].click();
    equal(target('additive')[0].getAttribute('aria-pressed'), 'true', 'pressed');
    check(shade(source('additive')[0]) > 0.8, 'a kept word is shown without the pointer');
    key(document.body, 'Escape');
    equal(target('additive')[0].getAttribute('aria-pressed'), 'false', 'let go');
    target('additive')[0].click();
    target('additive')[0].click();
    equal(shade(source('additive')[0]), 0, 'the second click lets go');

    // Focus works like the pointer; arrow keys move between words; screen readers announce the selection.
    target('additive')[0].focus();
    key(document.activeElement, 'ArrowRight');
    key(document.activeElement, 'ArrowRight');
    equal(document.activeElement, target('additive')[2], 'the third word has the focus');
    check(shade(source('additive')[2]) > 0.8, 'and shades the words it attended to');
    equal(all('.words').filter(row => all('[tabindex="0"]', row).length !== 1).length, 0, 'one tab stop a row');
    await moment(400);
    check($('status').textContent.startsWith('Hund ← dog'), 'the live region announces it');
    key(document.activeElement, 'End');
    equal(document.activeElement.textContent, '.', 'End');
    key(document.activeElement, 'ArrowRight');
    equal(document.activeElement.textContent, '.', 'the focus stays at the end');
    key(document.activeElement, 'Home');
    equal(document.activeElement.textContent, 'Ein', 'Home');
    document.activeElement.blur();
    equal(shade(source('additive')[0]), 0, 'no shade without focus');

    // The matrix reacts to the pointer and shows gold links.
    pointAt('additive', [3, 9], [3, 9]);
    check(/^läuft ← runs 0\.\d\d$/.test(readout('additive')), `a cell: ${readout('additive')}`);
    equal(all('.band', card('additive')).filter(band => band.getAttribute('visibility') === 'visible').length, 2, 'row and column');
    leave(card('additive').querySelector('.matrix'));
    equal(all('.band', card('additive')).filter(band => band.getAttribute('visibility') === 'visible').length, 0, 'no more');
    equal(all('rect.sure', card('additive')).length, 7, 'sure links');
    equal(all('rect.possible', card('additive')).length, 3, 'possible links');
    equal(all('svg text', card('additive')).length, 18, 'labels');

    // The three views, with weights computed manually.
    go(6);
    equal(where(), 'Sentence 6 of 17', 'arrow keys in the list');
    equal($('list').getAttribute('aria-activedescendant'), list[5].id, 'the list marks the selected sentence');
    equal(all('[aria-selected=true]').length, 1, 'one is selected');
    enter(target('fine-grained')[0]);
    equal(readout('fine-grained'), 'x ← a 0.55 b 0.45', 'mean over dimensions');
    equal(readout('additive'), 'x ← b 0.75 a 0.25', 'one weight per word pair');
    leave(target('fine-grained')[0]);
    enter(target('additive')[1]);
    equal(readout('additive'), 'y ← b 2.50 a 0.50', 'a weight above 1 keeps its value');
    equal(shade(source('additive')[1]), 1, 'but not its shade');
    leave(target('additive')[1]);
    check(card('fine-grained').querySelector('.slider').hidden, 'no slider for the mean over all dimensions');
    choose('fine-grained', 'one');
    check(!card('fine-grained').querySelector('.slider').hidden, 'a slider for one dimension');
    const first = ink('fine-grained');
    slide('fine-grained', 2);
    check(ink('fine-grained') !== first, 'the slider changes the matrix');
    equal(card('fine-grained').querySelector('output').textContent, 'dimension 2 of 2', 'the slider shows its position');
    enter(target('fine-grained')[0]);
    equal(readout('fine-grained'), 'x ← b 0.80 a 0.20', 'the second dimension');
    equal(shade(source('fine-grained')[1]), 0.8, 'its shade');
    leave(target('fine-grained')[0]);
    choose('fine-grained', 'over');
    equal(readout('fine-grained'), 'dimension 2 ← b 0.60 a 0.40', 'mean over target words');
    slide('fine-grained', 1);
    equal(readout('fine-grained'), 'dimension 1 ← a 0.60 b 0.40', 'of another dimension');
    pointAt('fine-grained', [0, 2], [1, 2]);
    equal(readout('fine-grained'), 'dimension 2 ← a 0.40', 'a cell of this view');
    pointAt('fine-grained', [0, 2], [1, 2], 'click');
    check(card('fine-grained').querySelector('input[value=one]').checked, 'a click on a dimension shows it alone');
    equal(card('fine-grained').querySelector('output').textContent, 'dimension 2 of 2', 'that one');

    // Full contrast: the largest weight has full ink.
    const paler = ink('fine-grained');
    $('contrast').click();
    check(ink('fine-grained') !== paler && card('fine-grained').querySelector('.legend').textContent === '00.80', 'full contrast');
    $('contrast').click();
    equal(ink('fine-grained'), paler, 'and back');
    choose('fine-grained', 'mean');

    // Changing the sentence without leaving the words; hiding systems.
    key(document.body, 'n');
    equal(where(), 'Sentence 7 of 17', 'n');
    key(document.body, 'p');
    key(document.body, 'p');
    equal(where(), 'Sentence 5 of 17', 'p');
    $('next').click();
    $('previous').click();
    equal(where(), 'Sentence 5 of 17', 'buttons');
    key($('list'), 'End');
    equal(where(), 'Sentence 17 of 17', 'End in the list');
    check($('next').disabled, 'nothing comes after the last');
    const last = list[count - 1].getBoundingClientRect(), view = $('list').getBoundingClientRect();
    check(last.top >= view.top && last.bottom <= view.bottom + 1, 'the chosen sentence is in view in the list');
    check(innerWidth < 1000 || last.bottom < innerHeight, 'and on the screen');
    list[1].click();
    equal(where(), 'Sentence 2 of 17', 'a click in the list');
    equal($('reference').textContent, 'ReferenceZwei Männer stehen am Herd und bereiten Essen zu .', 'the reference without gold links');
    enter(target('additive')[0]);
    check(source('fine-grained').every(button => shade(button) === 0), 'other words: nothing to compare');
    leave(target('additive')[0]);
    all('#systems button')[1].click();
    equal(cards().length, 1, 'a hidden system');
    all('#systems button')[1].click();
    equal(cards().length, 2, 'and back');

    $('filter').value = 'UMBRELLA';
    $('filter').dispatchEvent(new Event('input'));
    equal(list.filter(item => item.offsetHeight > 0).length, 1, 'sentences with that word');
    equal(where(), 'Sentence 5 of 17', 'which is shown');
    $('filter').value = '';
    $('filter').dispatchEvent(new Event('input'));
    equal(list.filter(item => !item.hidden).length, 17, 'all again');

    // The end mark is among the words and in the matrix, but is neither listed nor searched.
    check(list.every(item => !item.textContent.includes('</s>')), 'the list has end marks');
    equal(list[16].querySelector('.w').textContent, 'שלום לך , ילד .', 'from right to left in the list');
    $('filter').value = '</s>';
    $('filter').dispatchEvent(new Event('input'));
    equal(list.filter(item => !item.hidden).length, 0, 'sentences with an end mark');
    $('filter').value = '';
    $('filter').dispatchEvent(new Event('input'));
    go(17);
    equal(source('additive')[5].textContent, '</s>', 'it is among the words');

    // The keys are documented at the top of the page.
    check($('keys').closest('header') && $('keys').getBoundingClientRect().bottom < 300 && $('keys').tabIndex === 0, 'a button for the keys');
    const keysShown = () => $('help').offsetHeight > 0 && $('keys').getAttribute('aria-expanded') === 'true';
    check(!keysShown(), 'keys are hidden at first');
    $('keys').click();
    await moment(100);
    check(innerWidth < 1000 || document.querySelector('nav').getBoundingClientRect().bottom <= innerHeight, 'the list keeps on the screen');
    check(keysShown() && $('help').textContent.includes('Esc'), 'the button shows the keys');
    key(document.body, 'Escape');
    check(!keysShown(), 'Escape hides them');
    key(document.body, '?');
    check(keysShown(), '? shows them');
    key(document.body, '?');
    check(!keysShown(), 'and hides them');
    $('filter').dispatchEvent(new KeyboardEvent('keydown', {key: '?', bubbles: true}));
    check(!keysShown(), 'but not in a text field');

    // Column labels do not overlap at any length and stay readable. All matrices of a sentence have the same cell size
    // and use the available space.
    const lengths = new Set();
    for (let number = 1; number <= count; ++number) {
        go(number);
        const drawn = cards().filter(each => each.querySelector('.paper'));
        const boxes = drawn.map(each => each.querySelector('.paper').getBoundingClientRect());
        drawn.forEach((each, n) => {
            const labels = all('.rising', each), columns = all('button', all('.words', each)[0]).length;
            const title = `sentence ${number}, ${each.querySelector('h3').textContent}`;
            lengths.add(columns);
            equal(labels.length, columns, `${title}: labels`);
            const size = parseFloat(getComputedStyle(labels[0]).fontSize), places = labels.map(text => text.getScreenCTM());
            for (let i = 1; i < columns; ++i) {
                const apart = (places[i].e - places[i - 1].e) * Math.abs(places[i].b) / Math.hypot(places[i].a, places[i].b);
                check(size <= apart + 0.1, `${title}: letters of ${size}, ${apart} apart`);
            }
            check(size >= 11, `${title}: letters of ${size}`);
            const rows = all('button', all('.words', each)[1]).length, first = all('button', all('.words', drawn[0])[1]).length;
            check(Math.abs(boxes[n].width - boxes[0].width) < 0.1 &&
                Math.abs((boxes[n].height + 2) / rows - (boxes[0].height + 2) / first) < 0.1, `${title}: the cell size differs from its neighbor`);
            const matrix = each.querySelector('.matrix'), [names, field] = all('svg', matrix);
            const edge = names.getBoundingClientRect().left;
            check(all('text', names).every(text => text.getBoundingClientRect().left >= edge), `${title}: a target word is cut off`);
            const free = matrix.clientWidth - names.clientWidth - field.clientWidth;
            check(free < 4 || boxes[n].width / columns > 24, `${title}: ${free} pixels are empty`);
        });
    }
    check([2, 5, 9, 18, 20, 26, 30, 60].every(length => lengths.has(length)), `lengths: ${[...lengths]}`);

    // Matrices that do not fit can be scrolled: the target words stay, and the other cards follow; the focus stays in
    // view.
    go(16);
    const matrices = all('.matrix'), [names, field] = all('svg', matrices[1]), box = matrices[1].getBoundingClientRect();
    check(names.clientWidth + field.clientWidth > box.width && matrices[1].tabIndex === 0, '60 words are more than fit');
    matrices[1].scrollLeft = 90;
    await moment(300);
    equal(names.getBoundingClientRect().left, box.left, 'the target words stay');
    equal(matrices.map(matrix => matrix.scrollLeft).join(), '90,90,90', 'all are scrolled');
    $('contrast').click();
    equal(matrices[1].scrollLeft, 90, 'and stay so');
    $('contrast').click();
    source('additive')[59].focus();
    const last60 = all('.rising', card('additive'))[59].getBoundingClientRect();
    check(last60.left > box.left && last60.right <= box.right, 'the focus is in view');
    source('additive')[0].focus();
    equal(matrices[1].scrollLeft, 0, 'and back');
    document.activeElement.blur();

    // Matrices side by side are at the same height, even if one translation is longer.
    all('#systems button')[0].click();
    const [left, right] = cards(), top = element => element.getBoundingClientRect().top;
    check(left.querySelectorAll('.words')[1].children.length > right.querySelectorAll('.words')[1].children.length + 40, 'long and short');
    equal(top(left) === top(right), innerWidth > 1000, 'side by side where there is room');
    check(top(left) !== top(right) || Math.abs(top(left.querySelector('.paper')) - top(right.querySelector('.paper'))) < 0.1,
        'matrices at the same height');
    all('#systems button')[0].click();

    // Hostile words, and right-to-left words.
    go(3);
    equal(source('additive')[4].textContent, '<\/script><script>window.hacked=1<\/script>', 'a word is a word');
    equal(target('additive')[0].textContent, '<img/src=x/onerror=window.hacked=1>', 'so is this');
    equal(getComputedStyle(source('additive')[0].parentNode).direction, 'rtl', 'Hebrew from the right');
    equal(getComputedStyle(target('additive')[0].parentNode).direction, 'ltr', 'German from the left');
    source('additive')[0].focus();
    key(document.activeElement, 'ArrowLeft');
    equal(document.activeElement, source('additive')[1], 'left is onwards');
    document.activeElement.blur();
    check(all('svg text[direction=rtl]', card('additive')).length === 4, 'labels from right to left');
    equal(all('img, main script').length, 0, 'words create no markup');
    go(4);
    check(readout('additive') === 'No attention weights.' && readout('fine-grained') === 'No translation.', 'nothing to show');
    equal(all('.role').map(role => role.textContent).join(), 'Source,Translation,Source,Translation', 'an empty reference is not shown');

    // Colors, names, and room.
    const themes = [0, 1, 2].map(() => { $('theme').click(); return document.documentElement.dataset.theme; });
    check(themes.includes('light') && themes.includes('dark'), `themes: ${themes}`);
    const nameless = all('button, input, [role]').filter(element => !(element.getAttribute('aria-label') ||
        element.closest('label') || element.textContent || element.id === 'status'));
    equal(nameless.length, 0, 'controls without a name');
    for (let number = 1; number <= count; ++number) {
        go(number);
        check(document.documentElement.scrollWidth <= document.documentElement.clientWidth, `sentence ${number} is wider than the page`);
    }
    await moment(400);
    equal(location.hash, '#17', 'the address names the sentence');
    equal(window.hacked, undefined, 'a word became a script');
} catch (error) {
    failures.push(`stopped: ${error && error.stack || error}`);
}
const result = document.createElement('pre');
result.id = 'result';
result.textContent = failures.length ? failures.map(failure => `FAILED ${failure}`).join('\n') : `all ${checks} checks passed`;
document.body.append(result);
})();
