// SPDX-License-Identifier: BSD-3-Clause
//
// site.js CHROMIUM SITE PROGRAM PROFILE: uses pages of the built site as a reader would, by keyboard and mouse, in
// light and dark mode, 400 and 1,400 pixels wide, and without WebAssembly; also checks equations and search results.

'use strict';

const {execFileSync} = require('child_process');
const fs = require('fs');
const path = require('path');
const {start} = require('./chromium.js');

const [program, folder, native, profile] = process.argv.slice(2);
const failures = [];
let checks = 0;
const check = (value, what) => {
    ++checks;
    if (!value) failures.push(what);
};
const equal = (is, should, what) => check(is === should, `${what}: ${JSON.stringify(is)}, should be ${JSON.stringify(should)}`);
const address = name => `file://${path.resolve(folder)}/${name}`;
const products = new Map(execFileSync(native, ['--pages'], {encoding: 'utf8'}).trim().split('\n').map(line => line.split(' ')));

function quiet(page, where) {
    equal(page.messages.join('\n').slice(0, 500), '', `${where}: messages`);
    const others = page.requests.filter(each => !each.startsWith(address('')) && !/^(blob:null\/|data:|about:)/.test(each));
    equal(others.join(), '', `${where}: requests`);
}
const overhang = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
const picture = `document.querySelector('.heed-play img')`;

/// A mechanism's page: its picture first; the button loads its product, which reacts to sliders and keys.
async function plays(page, options, where) {
    await page.open(address('docs/mechanisms/temperature.html'), options);
    equal(await page.run(overhang), 0, `${where}: wider than the page`);
    check(await page.run(`${picture}.naturalWidth > 0 && !document.querySelector('iframe')`), `${where}: the picture first`);
    check(await page.run(`document.querySelector('.heed-play button').getBoundingClientRect().height >= 34`), `${where}: the button is large enough for a finger`);
    await page.run(`document.querySelector('.heed-play button').focus()`);
    await page.key('Enter');
    await page.until(`document.querySelector('iframe') && parseInt(document.querySelector('iframe').style.height) > 500`, 60);
    check(await page.run(`${picture}.offsetHeight > 50 && !document.querySelector('.heed-play button')`), `${where}: the picture stays next to the playground`);
    const play = await page.inside('playground.html');
    await play.until('document.documentElement.dataset.ready', 60);
    equal(await page.run(overhang), 0, `${where}: wider than the page, with the playground`);
    equal(await play.run(overhang), 0, `${where}: the playground is wider than its frame`);
    await play.until('document.documentElement.scrollHeight <= innerHeight');  // no scroll bar
    equal(await play.run('document.documentElement.dataset.theme'), options.scheme, `${where}: colors of the playground`);
    equal(await play.run('location.hash'), `#${products.get('temperature')}`, `${where}: its product`);
    const weights = () => play.run(`[...document.querySelectorAll('#bars tbody tr td:nth-child(3)')].map(cell => cell.textContent).join()`);
    const context = () => play.run(`document.querySelector('#context').textContent`);
    const [before, at] = [await weights(), await context()];
    // With the focus on the slider, the arrow keys move it.
    await play.run(`document.querySelector('#about-normalizer input').focus()`);
    for (let i = 0; i < 20; ++i) await page.key('ArrowRight');
    const after = await weights();
    check(Math.max(...after.split(',')) < Math.max(...before.split(',')), `${where}: a higher temperature makes weights flatter: ${before}, then ${after}`);
    check(await context() !== at, `${where}: and moves the context`);
    await play.run(`document.querySelector('.word').focus()`);
    for (let i = 0; i < 5; ++i) await page.key('ArrowRight');
    check(await weights() !== after, `${where}: keys move a word, and weights follow`);
    if (options.scheme === 'light') {
        await page.run(`document.body.dataset.theme = 'dark'`);
        await play.until(`document.documentElement.dataset.theme === 'dark'`);
    }
    check(await page.run(`document.querySelector('.heed-play a').href.endsWith('live/playground.html#page=temperature')`), `${where}: a link to the whole playground`);
    quiet(page, where);
}

/// Each mechanism page has the product that the program names for it.
async function allMechanisms(page) {
    const there = fs.readdirSync(path.join(folder, 'docs/mechanisms')).filter(name => name.endsWith('.html') && name !== 'README.html').map(name => name.slice(0, -5));
    equal(there.sort().join(), [...products.keys()].sort().join(), 'pages of mechanisms');
    for (const name of there) {
        const text = fs.readFileSync(path.join(folder, `docs/mechanisms/${name}.html`), 'utf8');
        check(text.includes(`data-page="${name}"`) && text.includes('live/embed.js'), `${name}: no live figure`);
    }
    await page.open(address(`live/playground.html#page=${there[0]}`), {});
    await page.until('document.documentElement.dataset.ready', 60);
    for (const name of there) {
        await page.run(`delete document.documentElement.dataset.ready, location.hash = 'page=${name}'`);
        await page.until('document.documentElement.dataset.ready');
        equal(await page.run('location.hash'), `#${products.get(name)}`, `the product of ${name}`);
        equal(await page.run(`$('problem').hidden`), true, `${name}: a problem`);
        equal(await page.run(`$('note').offsetHeight > 0`), ['abcnn', 'penalties'].includes(name), `${name}: the note`);
        equal(/^Penalties: .*coverage -?[0-9.]+/.test(await page.run(`$('penalties').textContent`)), await page.run(`$('matrix').offsetHeight > 0 && document.querySelector('#bars .bar i:nth-child(2)') === null`), `${name}: penalties where a word has one weight`);
    }
    quiet(page, 'all mechanisms');
}

/// Equations are typeset on narrow and wide screens and fit in the page; pictures are side by side if there is room.
async function equations(page) {
    for (const [width, columns] of [[400, 1], [1400, 2]])
        for (const name of ['sparse', 'temporal', 'differential', 'local']) {
            const where = `equations of ${name}, ${width} pixels`;
            await page.open(address(`docs/mechanisms/${name}.html`), {width, height: 900});
            check(await page.run(`document.querySelectorAll('.equations .katex-html').length > 1`), `${where}: none are set`);
            equal(await page.run(`document.querySelectorAll('.katex-source:not(:has(.katex)), .katex-error').length`), 0, `${where}: not set`);
            equal(await page.run(overhang), 0, `${where}: wider than the page`);
            equal(await page.run(`[...document.querySelectorAll('.equations')].filter(each => each.scrollWidth > each.clientWidth && getComputedStyle(each).overflowX !== 'auto').length`), 0, `${where}: cut off`);
            if (name === 'sparse') check(await page.run(`[1, 2].map(n => n * 300).findIndex(edge => document.querySelector('article img[src*="sparse"]').naturalWidth < edge) + 1`) === columns, `${where}: panels side by side`);
            quiet(page, where);
        }
}

/// Searching for a mechanism by name finds its page first.
async function search(page) {
    for (const [words, first] of [['temporal', 'temporal'], ['local_p', 'local'], ['additive', 'additive'], ['score::additive', 'additive'], ['top_k', 'sparse'],
        ['temporal attention', 'temporal']]) {
        await page.open(`${address('search.html')}?q=${encodeURIComponent(words)}`, {});
        await page.until(`document.querySelector('ul.search li a')`, 60);
        check((await page.run(`document.querySelector('ul.search li a').getAttribute('href')`)).startsWith(`docs/mechanisms/${first}.html`), `search for ${words}: ${await page.run(`document.querySelector('ul.search li a').href`)}`);
    }
}

/// The start page and the navigation lead to the three pages, which replace them.
async function tries(page) {
    await page.open(address('index.html'), {width: 400, height: 800, phone: true});
    equal(await page.run(overhang), 0, 'start page on a telephone');
    for (const [name, live] of [['learner', 'index.html'], ['playground', 'playground.html'], ['captions', 'captions.html']]) {
        await page.open(address('index.html'), {width: 1400, height: 900});
        check(await page.run(`Boolean(document.querySelector('article a[href="own/${name}.html"]'))`), `the start page leads to ${name}`);
        check(await page.run(`Boolean(document.querySelector('.sidebar-tree a[href="own/${name}.html"]'))`), `the navigation leads to ${name}`);
        await page.open(address(`own/${name}.html`), {width: 400, height: 800, phone: true, scheme: 'dark'});
        check(await page.run(`${picture}.naturalWidth > 0`), `${name}: the picture first`);
        await page.run(`document.querySelector('.heed-play button').click()`);
        await page.until(`document.querySelector('iframe') && parseInt(document.querySelector('iframe').style.height) > 100`, 60);
        const inside = await page.inside(live);
        if (name !== 'captions' || fs.existsSync(path.join(folder, 'live/model.js'))) await inside.until(`document.querySelector('#live').offsetHeight > 0`, 60);
        else check(await inside.run(`document.querySelector('#without').textContent.includes('--train')`), 'captions without a model say how to make one');
        equal(await inside.run('document.documentElement.dataset.theme'), 'dark', `${name}: colors`);
        equal(await page.run(overhang), 0, `${name}: wider than a telephone`);
    }
    quiet(page, 'start page');
}

async function withoutWebAssembly(page) {
    await page.tell('Page.addScriptToEvaluateOnNewDocument', {source: 'delete globalThis.WebAssembly'});
    for (const name of ['docs/mechanisms/temporal.html', 'own/learner.html', 'own/captions.html']) {
        await page.open(address(name), {});
        equal(await page.run('typeof WebAssembly'), 'undefined', 'WebAssembly');
        check(await page.run(`${picture}.naturalWidth > 0 && ${picture}.offsetHeight > 50`), `${name}: the picture stays`);
        equal(await page.run(`document.querySelectorAll('.heed-play button, iframe').length`), 0, `${name}: nothing that does not work`);
        quiet(page, `${name} without WebAssembly`);
    }
}

(async () => {
    const browser = await start(program, profile);
    try {
        const page = await browser.page();
        await plays(page, {width: 1400, height: 900, scheme: 'light'}, 'a mechanism, wide');
        await plays(page, {width: 400, height: 800, scheme: 'dark', phone: true}, 'a mechanism on a telephone');
        await allMechanisms(page);
        await equations(page);
        await search(await browser.page());
        await tries(page);
        await withoutWebAssembly(await browser.page());
    } finally {
        browser.stop();
    }
})().catch(problem => failures.push(`stopped: ${problem.stack}`)).then(() => {
    for (const failure of failures) console.log(`FAILED ${failure.slice(0, 600)}`);
    if (!failures.length) console.log(`all ${checks} checks passed`);
    process.exit(failures.length ? 1 : 0);
});
