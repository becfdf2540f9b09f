// SPDX-License-Identifier: BSD-3-Clause
//
// browser.js CHROMIUM PAGES PROGRAM PROFILE CAPTIONS: uses the pages as a reader would: with a mouse, a finger and a
// keyboard, in light and dark mode, on wide and phone screens, and without WebAssembly.

'use strict';

const {execFileSync} = require('child_process');
const fs = require('fs');
const path = require('path');
const {start} = require('./chromium.js');

const [program, folder, native, profile, captions] = process.argv.slice(2);
const failures = [];
let checks = 0;
const check = (value, what) => {
    ++checks;
    if (!value) failures.push(what);
};
const equal = (is, should, what) => check(is === should, `${what}: ${JSON.stringify(is)}, should be ${JSON.stringify(should)}`);
const address = name => `file://${path.resolve(folder)}/${name}`;
const shown = id => `$('${id}').offsetHeight > 0`;
const moment = time => new Promise(done => setTimeout(done, time));

/// No error occurred and no external request was made.
function quiet(page, where) {
    equal(page.messages.join('\n').slice(0, 500), '', `${where}: messages`);
    const others = page.requests.filter(each => !each.startsWith(address('')) && !/^(blob:null\/|data:|about:)/.test(each));
    equal(others.join(), '', `${where}: requests`);
}

/// No element is wider than the page, and every control has a name.
async function fits(page, where) {
    equal(await page.run('document.documentElement.scrollWidth - document.documentElement.clientWidth'), 0, `${where}: wider than the page`);
    equal(await page.run(`[...document.querySelectorAll('button, input, select, [tabindex], [role=img]')].filter(each => !(each.getAttribute('aria-label') ||
        each.closest('label') || each.textContent.trim())).map(each => each.outerHTML).join()`), '', `${where}: without a name`);
}

async function learns(page, options, where) {
    await page.open(address('index.html'), options);
    await page.until('document.documentElement.dataset.ready');
    check(await page.run(shown('live')) && !await page.run(shown('picture')), `${where}: the picture makes room`);
    equal(await page.run('document.documentElement.dataset.theme'), options.scheme, `${where}: colors`);
    await fits(page, where);
    const translation = async text => {
        await page.run(`$('typed').value = ${JSON.stringify(text)}, $('translation').replaceChildren(), $('ask').requestSubmit()`);
        await page.until(`$('translation').textContent`);
        return page.run(`$('translation').textContent`);
    };
    const loss = async () => {
        const [, updates, value] = (await page.run(`$('curve').querySelector('svg').getAttribute('aria-label')`)).match(/after (\d+) updates: ([\d.]+)/);
        return {updates: Number(updates), value: Number(value)};
    };
    check((await translation('7')).endsWith('not trained yet'), `${where}: before training`);

    // Training starts, stops on request, and continues.
    await page.run(`$('train').click()`);
    await page.until('Number(document.documentElement.dataset.updates) >= 10', 30);
    await page.run(`$('train').click()`);
    await moment(400);
    const first = await loss();
    await moment(400);
    equal((await loss()).updates, first.updates, `${where}: paused`);
    check(first.updates < 500, `${where}: paused after ${first.updates} updates`);
    equal(await page.run(`$('train').textContent`), 'Resume', `${where}: the button when paused`);
    await page.run(`$('train').click()`);
    await page.until('document.documentElement.dataset.exact', 100);
    const last = await loss();
    equal(last.updates, 600, `${where}: updates`);
    check(first.value > 5 * last.value && last.value < 0.05, `${where}: loss from ${first.value} to ${last.value}`);
    const [seconds, exact] = await page.run('[document.documentElement.dataset.seconds, document.documentElement.dataset.exact].map(Number)');
    check(seconds < 60, `${where}: learned in ${seconds} s`);
    check(exact >= 0.97, `${where}: ${exact} of unseen numbers are right`);
    console.log(`${where}: learned in ${seconds.toFixed(1)} s, loss ${last.value}, ${100 * exact}% of unseen numbers`);

    // The alignment: vier attends to four, zwanzig to twenty.
    const weights = await page.run(`[...$('alignment').querySelectorAll('tbody tr')].map(row => [...row.querySelectorAll('td')].map(cell => Number(cell.dataset.value)))`);
    equal(await page.run(`[...$('alignment').querySelectorAll('tbody th')].map(each => each.textContent).join(' ')`), 'sieben hundert vier und zwanzig </s>', `${where}: rows`);
    equal(await page.run(`[...$('alignment').querySelectorAll('thead th')].map(each => each.textContent).join(' ')`), 'seven hundred twenty four </s>', `${where}: columns`);
    check(weights.every(row => Math.abs(row.reduce((sum, x) => sum + x, 0) - 1) < 0.01), `${where}: weights sum to 1`);
    for (const [row, column] of [[0, 0], [2, 3], [4, 2]]) check(weights[row][column] > 0.5, `${where}: weight ${row}, ${column} is ${weights[row][column]}`);
    check(await page.run(`getComputedStyle($('alignment').querySelectorAll('td')[1]).backgroundColor !== getComputedStyle($('alignment').querySelectorAll('td')[2]).backgroundColor`), `${where}: more weight is another color`);

    // Text typed by a user.
    equal(await translation('nine hundred seventy three thousand eighty six'), 'neun hundert drei und siebzig tausend sechs und achtzig', `${where}: words`);
    equal(await page.run(`$('translated').querySelectorAll('tbody tr').length`), 10, `${where}: rows of its alignment, with the end`);
    equal(await translation('Four Hundred and Five'), 'vier hundert fünf', `${where}: capitals and "and"`);
    equal(await translation('31'), 'ein und dreißig', `${where}: digits`);
    check((await translation('seven bananas')).endsWith('unknown words: “bananas”'), `${where}: unknown words`);
    check((await translation('12345678')).includes('999999'), `${where}: too large`);
    await page.run(`$('sentence').value = '38', $('sentence').dispatchEvent(new Event('change'))`);
    await page.until(`$('alignment').querySelector('thead').textContent.includes('thirty')`);
    await fits(page, `${where}, learned`);
    quiet(page, where);
}

async function startsOver(page) {
    await page.run(`$('again').click()`);
    await page.until(`$('status').textContent.includes('all random')`);
    equal(await page.run(`$('train').disabled`), false, 'again from the start');
    for (const attention of ['general', 'temporal', 'local-p', 'none']) {
        await page.run(`$('attention').value = '${attention}', $('attention').dispatchEvent(new Event('change'))`);
        await page.until(`$('status').textContent.includes('all random')`);
        await page.run(`delete document.documentElement.dataset.updates, $('train').click()`);
        await page.until('Number(document.documentElement.dataset.updates) >= 5', 30);
        await page.run(`$('train').click()`);
        await moment(250);
        equal(await page.run(shown('no-weights')), attention === 'none', `${attention}: says that there are no weights`);
        equal(await page.run(shown('alignment')), attention !== 'none', `${attention}: weights`);
    }
    quiet(page, 'other attentions');
}

const chosen = product => product.map((name, i) => {
    const id = ['score', 'normalizer', 'combiner'][i];
    return `$('${id}').value = '${name}', $('${id}').dispatchEvent(new Event('change'));`;
}).join('\n');
const asShown = `[...$('steps').querySelectorAll('input')].map(input => {
    input.click();
    const cells = [...$('bars').querySelectorAll('tbody tr')].map(row => [...row.querySelectorAll('[data-value]')].map(cell => JSON.parse(cell.dataset.value)));
    return {scores: cells.flatMap(cell => cell[0]), weights: cells.flatMap(cell => cell[1]), context: JSON.parse($('context').dataset.value)};
})`;

async function equalsNative(page) {
    const products = ['additive softmax weighted_sum', 'additive temporal weighted_sum', 'dot softmax_with_sink weighted_sum',
        'general sparsemax gated_weighted_sum', 'location local_p weighted_sum', 'cosine entmax attentional_weighted_sum', 'match sigmoid weighted_sum',
        'kernel ratio weighted_sum', 'gaussian_mixture retention weighted_sum', 'conv_s2s temperature weighted_sum', 'with_word top_k weighted_sum',
        'with_coverage decayed_temporal weighted_sum', 'with_fertility learned_temporal weighted_sum', 'with_location chunkwise weighted_sum',
        'with_gated_coverage local_m_temporal weighted_sum', 'with_recurrence monotonic weighted_sum', 'with_neighbors entmax15 weighted_sum',
        'rotary gumbel weighted_sum', 'forgetting hard weighted_sum', 'alibi stick_breaking weighted_sum', 'relative dropout weighted_sum',
        'additive_per_dimension temporal elementwise_sum', 'additive_grouped softmax gated_grouped_sum',
        'additive document_temporal weighted_sum', 'additive temporal multi_head', 'cosine sparsemax gated_heads', 'scaled_dot softmax differential',
        'scaled_dot softmax talking_heads', 'scaled_dot softmax latent_heads'].map(line => line.split(' '));
    const lines = execFileSync(native, products.flat(), {encoding: 'utf8', maxBuffer: 1 << 26}).trim().split('\n').map(line => JSON.parse(line));
    equal(lines.length, products.length, 'products of the program');
    const near = (is, should) => is.length === should.length && is.every((x, i) => x === should[i] || Math.abs(x - should[i]) <= 1e-10 * (1 + Math.abs(should[i])));
    for (const [i, product] of products.entries()) {
        await page.run(chosen(product));
        const steps = await page.run(asShown);
        equal(await page.run('location.hash'), `#${product.join('+')}`, 'the address names the product');
        for (const [s, step] of steps.entries()) {
            check(near(step.scores, lines[i].scores[s]), `${product.join(' ')}, step ${s}: scores ${step.scores} instead of ${lines[i].scores[s]}`);
            check(near(step.weights, lines[i].weights[s]), `${product.join(' ')}, step ${s}: weights ${step.weights} instead of ${lines[i].weights[s]}`);
            check(near(step.context, lines[i].contexts[s]), `${product.join(' ')}, step ${s}: context ${step.context} instead of ${lines[i].contexts[s]}`);
        }
    }
}

async function plays(page) {
    await page.open(address('playground.html#dot+temperature'), {});
    await page.until('document.documentElement.dataset.ready');
    equal(await page.run(`['score', 'normalizer', 'combiner'].map(id => $(id).value).join()`), 'dot,temperature,weighted_sum', 'the address chooses');
    await fits(page, 'playground');
    await equalsNative(page);

    // Illegal choices are grayed out, with the library's reason.
    await page.run(chosen(['additive_grouped', 'softmax', 'gated_grouped_sum']));
    equal(await page.run(`[...$('combiner').options].filter(each => !each.disabled).map(each => each.value).join()`), 'grouped_sum,attentional_grouped_sum,gated_grouped_sum', 'combiners of groups');
    check((await page.run(`$('about-combiner').textContent`)).includes('its heads need a score per position'), 'why no heads');
    check((await page.run(`$('about-combiner').textContent`)).includes('a score per group with combine::grouped_sum'), 'why not other combiners');
    check(await page.run(`$('normalizer').querySelector('[value=ratio]').disabled`), 'ratio with scores below 0');
    check((await page.run(`$('about-normalizer').textContent`)).includes('no score may be negative'), 'why not ratio');
    await page.run(chosen(['dot']));
    equal(await page.run(`$('combiner').value`), 'gated_weighted_sum', 'another score takes the combiner of its kind along');
    await page.run(chosen(['kernel', 'ratio']) + chosen(['dot']));
    equal(await page.run(`$('normalizer').value`), 'softmax', 'and a normalizer that fits');

    // Sliders, keys, and the mouse.
    const weights = () => page.run(`[...$('bars').querySelectorAll('tbody tr td:nth-child(3)')].map(cell => cell.textContent).join()`);
    await page.run(chosen(['additive', 'temperature', 'weighted_sum']) + `$('steps').querySelectorAll('input')[0].click()`);
    const before = await weights();
    await page.run(`{ const range = $('about-normalizer').querySelector('input'); range.value = 4; range.dispatchEvent(new Event('input')); }`);
    const flatter = await weights();
    check(Math.max(...flatter.split(',')) < Math.max(...before.split(',')), `a temperature of 4: ${before}, then ${flatter}`);
    equal(await page.run(`$('about-normalizer').querySelector('output').textContent`), '4', 'the number next to the slider');
    await page.run(`document.querySelector('.word').focus()`);
    for (let i = 0; i < 5; ++i) await page.key('ArrowRight');
    check((await page.run(`document.activeElement.getAttribute('aria-label')`)).includes('at -0.9, 0.7'), 'arrow keys move a word');
    check(await weights() !== flatter, 'and the weights follow');
    await page.key('Tab');
    equal(await page.run(`document.activeElement.dataset.name`), 'word 2, cat,', 'Tab goes to the next word');
    check(await page.run(`getComputedStyle(document.activeElement.querySelector('.hit')).stroke !== 'none'`), 'the focus can be seen');
    const middle = selector => page.run(`{ const element = document.querySelector('${selector}'); element.scrollIntoView({block: 'center'}); const box = element.getBoundingClientRect(); [box.left + box.width / 2, box.top + box.height / 2]; }`);
    await page.run(`$('steps').querySelectorAll('input')[0].click()`);
    const still = await weights();
    const [x, y] = await middle('.query .hit');
    await page.tell('Input.dispatchMouseEvent', {type: 'mousePressed', x, y, button: 'left', clickCount: 1});
    await page.tell('Input.dispatchMouseEvent', {type: 'mouseMoved', x: x + 120, y: y - 30, button: 'left', buttons: 1});
    await page.tell('Input.dispatchMouseEvent', {type: 'mouseReleased', x: x + 120, y: y - 30, button: 'left', clickCount: 1});
    check(await weights() !== still, 'the mouse moves the query');
    await page.tell('Input.dispatchMouseEvent', {type: 'mouseMoved', x, y});
    const left = await weights();
    await page.tell('Input.dispatchMouseEvent', {type: 'mouseMoved', x: x + 5, y});
    equal(await weights(), left, 'and lets go');
    await page.run(`$('matrix').querySelectorAll('tbody tr')[3].click()`);
    equal(await page.run(`document.querySelector('#steps input:checked').value`), '3', 'a row of the matrix chooses its step');
    await page.run(`$('reset').click(), $('steps').querySelectorAll('input')[0].click()`);
    equal(await weights(), before, 'all settings restored');
    const themes = [await page.run(`document.documentElement.dataset.theme`), await page.run(`$('theme').click(), document.documentElement.dataset.theme`)];
    equal(themes.join(), 'light,dark', 'the switch');
    await page.run(`$('theme').click(), localStorage.clear()`);
    quiet(page, 'playground');
}

async function playsOnATelephone(page) {
    await page.open(address('playground.html#additive_per_dimension'), {width: 400, height: 800, scheme: 'dark', phone: true});
    await page.until('document.documentElement.dataset.ready');
    equal(await page.run('document.documentElement.dataset.theme'), 'dark', 'dark on a telephone');
    await fits(page, 'playground on a telephone');
    const [x, y, before] = await page.run(`{ const hit = document.querySelector('.word .hit'); hit.scrollIntoView({block: 'center'}); const box = hit.getBoundingClientRect();
        [box.left + box.width / 2, box.top + box.height / 2, $('context').textContent]; }`);
    await page.tell('Input.dispatchTouchEvent', {type: 'touchStart', touchPoints: [{x, y}]});
    await page.tell('Input.dispatchTouchEvent', {type: 'touchMove', touchPoints: [{x: x + 40, y: y + 40}]});
    await page.tell('Input.dispatchTouchEvent', {type: 'touchMove', touchPoints: [{x: x + 80, y: y + 60}]});
    await page.tell('Input.dispatchTouchEvent', {type: 'touchEnd', touchPoints: []});
    check(await page.run(`$('context').textContent`) !== before, 'a finger moves a word');
    const small = await page.run(`[...document.querySelectorAll('button:not(.quiet), select, #steps label')].filter(each => each.offsetHeight > 0 && each.getBoundingClientRect().height < 34).length`);
    equal(small, 0, 'controls too small for a finger');
    quiet(page, 'playground on a telephone');
}

/// The model of CAPTIONS: its translations and how concentrated its attention is.
async function translates(page) {
    await page.open(address('captions.html'), {});
    await page.until('document.documentElement.dataset.ready');
    await fits(page, 'captions');
    const lines = name => fs.readFileSync(path.join(captions, name), 'utf8').trim().split('\n');
    const sources = lines('test2016.en'), translated = lines('translated');
    for (const [i, source] of sources.entries()) {
        const typed = source[0].toUpperCase() + source.slice(1).replace(' .', '.');
        await page.run(`$('typed').value = ${JSON.stringify(typed)}, $('ask').requestSubmit()`);
        equal(await page.run(`JSON.parse(document.documentElement.dataset.words).join(' ')`), translated[i], `caption “${typed}”`);
    }
    check(new Set(translated).size > 8, 'the small model tells captions apart');
    equal(await page.run(`$('translation').textContent`), translated.at(-1).replace(' .', '.'), 'displayed translation');
    const [rows, columns, sums] = await page.run(`{ const rows = [...$('alignment').querySelectorAll('tbody tr')];
        [rows.length, rows[0].querySelectorAll('td').length, rows.map(row => [...row.querySelectorAll('td')].reduce((sum, cell) => sum + Number(cell.dataset.value), 0))]; }`);
    equal(rows, translated.at(-1).split(' ').length, 'a row for each German word');
    equal(columns, sources.at(-1).split(' ').length + 1, 'a column for each English word, and the end');
    check(sums.every(sum => Math.abs(sum - 1) < 0.001), `weights of words sum to 1: ${sums}`);
    quiet(page, 'captions');
}

/// The playground embedded in another page loads on request, in the required colors and height.
async function isEmbedded(page) {
    fs.writeFileSync(path.join(folder, 'embedding.html'), `<!doctype html><html lang="en"><title>A page</title><figure class="heed-play"
        data-product="dot+sparsemax+weighted_sum"><img src="additive.svg" alt="weights"></figure><script src="embed.js"></script>`);
    await page.open(address('embedding.html'), {width: 700, height: 900});
    check(await page.run(`document.querySelector('figure img').naturalWidth > 0 && !document.querySelector('iframe')`), 'the picture first');
    await page.run(`document.querySelector('figure button').click()`);
    await page.until(`/^[0-9]+px$/.test(document.querySelector('iframe').style.height) && parseInt(document.querySelector('iframe').style.height) > 500`);
    const {frameTree} = await page.tell('Page.getFrameTree');
    const inside = frameTree.childFrames?.[0]?.frame;
    check(inside?.url.endsWith('playground.html') && inside.urlFragment === '#dot+sparsemax+weighted_sum' || inside?.url.includes('playground.html?embed'), `embedded page: ${JSON.stringify(inside?.url)}`);
    quiet(page, 'embedded');
    fs.unlinkSync(path.join(folder, 'embedding.html'));
}

async function withoutWebAssembly(page) {
    await page.tell('Page.addScriptToEvaluateOnNewDocument', {source: 'delete globalThis.WebAssembly'});
    for (const name of ['index.html', 'playground.html', 'captions.html']) {
        await page.open(address(name), {});
        equal(await page.run('typeof WebAssembly'), 'undefined', 'WebAssembly');
        check(await page.run(shown('picture')) && await page.run(`document.querySelector('#picture img').naturalWidth > 0`), `${name}: the picture stays`);
        check(!await page.run(shown('live')), `${name}: nothing that does not work`);
        quiet(page, `${name} without WebAssembly`);
    }
}

(async () => {
    const browser = await start(program, profile);
    try {
        const page = await browser.page();
        await learns(page, {width: 1280, height: 900, scheme: 'light'}, 'wide');
        await startsOver(page);
        await learns(page, {width: 400, height: 800, scheme: 'dark', phone: true}, 'on a telephone');
        await plays(page);
        await playsOnATelephone(page);
        await translates(page);
        await isEmbedded(page);
        await withoutWebAssembly(await browser.page());
    } finally {
        browser.stop();
    }
})().catch(problem => failures.push(`stopped: ${problem.stack}`)).then(() => {
    for (const failure of failures) console.log(`FAILED ${failure.slice(0, 600)}`);
    if (!failures.length) console.log(`all ${checks} checks passed`);
    process.exit(failures.length ? 1 : 0);
});
