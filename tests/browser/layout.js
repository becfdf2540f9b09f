// SPDX-License-Identifier: BSD-3-Clause
//
// layout.js CHROMIUM SITE PROFILE: opens each page of the built site at the width of a telephone, some also at those of a tablet and a desktop,
// and finds pages that scroll sideways, text and pictures that are cut or overlap their neighbors, and colors that are hard to read.

'use strict';

const fs = require('fs');
const path = require('path');
const {start} = require('./chromium.js');

const [program, folder, profile] = process.argv.slice(2);
const widths = [[390, true], [800, true], [1400, false]];
const everySource = 60;  // the pages of sources have one layout: some are enough
const everyAtAllWidths = 3;  // of the pages; the others are opened at the smallest width only

/// Runs in the page; returns its faults.
function faults() {
    const found = [], root = document.documentElement, width = root.clientWidth;
    const named = e => `${e.localName}${e.className && typeof e.className === 'string' ? '.' + e.className.trim().replace(/\s+/g, '.') : ''} "${e.textContent.trim().replace(/\s+/g, ' ').slice(0, 60)}"`;
    const page = new Set([root, document.body, document.querySelector('.page'), document.querySelector('.main'), document.querySelector('.content')]);
    const scrolls = e => !page.has(e) && /auto|scroll/.test(getComputedStyle(e).overflowX);
    const inBox = e => { for (; e; e = e.parentElement) if (scrolls(e)) return true; };
    for (const e of page) if (e && e.scrollWidth > e.clientWidth) found.push(`the page scrolls sideways: ${e.localName} ${e.className}, ${e.scrollWidth} > ${e.clientWidth}`);
    for (const e of document.querySelectorAll('body *')) {
        if (!e.clientWidth && !e.offsetWidth && e.localName !== 'img' || e.closest('.katex, svg, iframe, .copybtn, .sidebar-drawer, .toc-drawer, .headerlink')) continue;
        const box = e.getBoundingClientRect();
        if ((box.right > width + 1 || box.left < -1) && box.width > 1 && !inBox(e.parentElement)) found.push(`outside of the page: ${named(e)}, ${Math.round(box.left)} to ${Math.round(box.right)}`);
        if (e.matches('td, th, pre, h1, h2, h3, h4, .to-source, .header-line') && e.scrollWidth > e.clientWidth + 1 && !scrolls(e)) found.push(`text is cut, or covers its neighbor: ${named(e)}, ${e.scrollWidth} > ${e.clientWidth}`);
        const style = e.matches('.equations, .equations > *, .wide-picture, .table-wrapper, pre') ? getComputedStyle(e) : null;
        if (style?.overflowY === 'hidden' && e.scrollHeight > e.clientHeight + 1) found.push(`cut at the bottom: ${named(e)}, ${e.scrollHeight} > ${e.clientHeight}`);
        if (e.localName === 'img') {
            if (e.complete && !e.naturalWidth) found.push(`no picture: ${e.getAttribute('src')}`);
            if (e.naturalWidth > 1.8 * box.width && width < 600) found.push(`a picture is shrunk until its text is unreadable: ${e.getAttribute('src')}, ${e.naturalWidth} to ${Math.round(box.width)}`);
        }
    }
    return found;
}

/// Runs in the page; returns the kinds of text whose contrast to the background is below 4.5.
function faint() {
    const channels = color => color.match(/[\d.]+/g).map(Number);
    const light = rgb => { const [r, g, b] = rgb.map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const found = new Map();
    for (const e of document.querySelectorAll('article *, .source *')) {
        if (![...e.childNodes].some(node => node.nodeType === 3 && node.data.trim()) || e.closest('.katex, .headerlink, svg')) continue;
        let behind = e;
        while (behind && (channels(getComputedStyle(behind).backgroundColor)[3] ?? 1) < 0.9) behind = behind.parentElement;
        const [a, b] = [e, behind].map(x => light(channels(getComputedStyle(x)[x === e ? 'color' : 'backgroundColor']).slice(0, 3))).sort((x, y) => y - x);
        const contrast = (a + 0.05) / (b + 0.05);
        if (contrast < 4.5) found.set(`${e.localName}.${e.className}`, `${contrast.toFixed(2)}, "${e.textContent.trim().slice(0, 40)}"`);
    }
    return [...found].map(([kind, how]) => `hard to read: ${kind}, contrast ${how}`);
}

const all = fs.readdirSync(folder, {recursive: true}).map(String).filter(name => name.endsWith('.html') && !name.startsWith('live/')).sort();
const sources = all.filter(name => name.startsWith('source/')), pages = all.filter(name => !name.startsWith('source/'));
// One page of each kind, for colors.
const colored = new Set(['index.html', 'docs/mechanisms/temporal.html', 'docs/results/speed.html', 'docs/start/packages.html', 'examples/course/01_by_hand.html', 'reference/score.html', 'reference/operations.html']);

const failures = [];
(async () => {
    if (pages.length < 100) failures.push(`only ${pages.length} pages in ${folder}`);
    const browser = await start(program, profile);
    const waiting = [...pages, ...sources.filter((_, i) => i % everySource === 0)].map((name, i) => [name, i]);
    const drawn = page => page.run('new Promise(done => setTimeout(done, 10))');  // no frames are drawn in the background
    const address = name => `file://${path.resolve(folder)}/${name}`;
    async function look() {
        const page = await browser.page();
        while (waiting.length) {
            const [name, i] = waiting.shift();
            await page.open(address(name), {width: widths[0][0], height: 900, phone: true});
            for (const [width, phone] of i % everyAtAllWidths === 0 ? widths : widths.slice(0, 1)) {
                await page.tell('Emulation.setDeviceMetricsOverride', {width, height: 900, deviceScaleFactor: 1, mobile: phone});
                await drawn(page);
                for (const fault of await page.run(`(${faults})()`)) failures.push(`${name}, ${width} pixels: ${fault}`);
            }
            for (const scheme of colored.has(name) || name === sources[0] ? ['light', 'dark'] : []) {
                await page.tell('Emulation.setEmulatedMedia', {features: [{name: 'prefers-color-scheme', value: scheme}]});
                await drawn(page);
                for (const fault of await page.run(`(${faint})()`)) failures.push(`${name}, ${scheme}: ${fault}`);
            }
            if (page.messages.length) failures.push(`${name}: messages: ${page.messages.splice(0).join('; ')}`);
        }
        return page;
    }
    try {
        const [page] = await Promise.all([look(), look()]);
        await page.tell('Page.bringToFront');
        // On a telephone, the buttons at the top open the navigation and the contents.
        for (const [name, button, drawer] of [['index.html', '__navigation', 'sidebar'], ['reference/score.html', '__toc', 'toc']]) {
            await page.open(address(name), {width: 390, height: 900, phone: true});
            await page.run(`document.querySelector('.mobile-header label[for="${button}"]').click()`);
            await page.until(`(box => box.left >= -1 && box.right <= 391)(document.querySelector('.${drawer}-drawer').getBoundingClientRect())`);
        }
    } finally {
        browser.stop();
    }
})().catch(problem => failures.push(`stopped: ${problem.stack}`)).then(() => {
    for (const failure of failures.slice(0, 60)) console.log(`FAILED ${failure.slice(0, 400)}`);
    console.log(failures.length ? `${failures.length} faults` : `${pages.length} pages fit at ${widths[0][0]} pixels, and one in ${everyAtAllWidths} at ${widths.slice(1).map(([width]) => width).join(' and ')}`);
    process.exit(failures.length ? 1 : 0);
});
