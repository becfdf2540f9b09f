// SPDX-License-Identifier: BSD-3-Clause
//
// service.js BROWSER PROFILE ADDRESS TEXT [PICTURES]: the page of `translate serve`: types two lines of this text,
// points at words, and uses the keys. PICTURES: a folder for screenshots.

'use strict';

const fs = require('fs');
const {start} = require('./chromium.js');
const [program, profile, address, text, pictures] = process.argv.slice(2);

(async () => {
    const browser = await start(program, profile);
    const check = (good, what) => { if (!good) throw new Error(what); };
    try {
        for (const [width, scheme, phone] of [[1400, 'light', false], [1400, 'dark', false], [400, 'light', true], [400, 'dark', true]]) {
            const page = await browser.page();
            await page.open(address, {width, height: 900, scheme, phone});
            check(await page.run('document.documentElement.dataset.theme') === scheme, `not ${scheme}`);
            check(await page.run('document.activeElement.id') === 'text' || phone, 'one cannot type at once');
            check(/^Translates from English to Counting\. /.test(await page.run(`document.querySelector('.how').textContent`)), 'no languages');
            check(await page.run(`$('text').lang`) === 'en', 'the text has no language');
            await page.run(`document.querySelector('.examples button').click()`);
            await page.until(`document.querySelectorAll('article:not(.old)').length === 1`);
            check(await page.run(`$('text').value === document.querySelector('.examples button').textContent`), 'the example is not there');
            if (pictures) fs.writeFileSync(`${pictures}/service-example-${width}-${scheme}.png`, await page.picture(false));
            await page.run(`$('text').focus(); $('text').value = ''; $('text').dispatchEvent(new Event('input'))`);
            await page.until(`document.querySelectorAll('article').length === 0`);
            for (const each of text) await page.tell('Input.insertText', {text: each});  // character by character, as a user types
            await page.until(`document.querySelectorAll('article:not(.old)').length === 1 &&
                document.querySelectorAll('.line.from .word').length === ${text.split(' ').length + 1}`);
            await page.tell('Input.insertText', {text: '\n' + text});
            await page.until(`document.querySelectorAll('article:not(.old)').length === 2`);
            check(/^\d+ ms$/.test(await page.run(`$('state').textContent`)), 'no time');
            const words = await page.run(`document.querySelectorAll('article:first-child .line.to .word').length`);
            check(words > 0, 'no words');
            check(await page.run(`document.querySelectorAll('article:first-child tbody tr').length`) === words + 1, 'no row for each word');
            check(await page.run(`document.querySelectorAll('article:first-child .others li').length`) >= 2, 'no alternatives');

            // Keyboard: a word is selected, and the source words show its weights.
            const shaded = `[...document.querySelectorAll('article:first-child .line.from .word')].filter(e => e.style.backgroundImage).length`;
            check(await page.run(shaded) === 0, 'shaded before');
            await page.run(`document.querySelector('article .line.to .word').focus()`);
            check(await page.run(shaded) > 0, 'a selected word shades no source words');
            await page.key('ArrowUp');
            check(await page.run(`document.activeElement.closest('.from') !== null`), 'the up key does not reach the source');
            check(await page.run(`[...document.querySelectorAll('article:first-child .line.to .word')].some(e => e.style.backgroundImage)`), 'a source word shades nothing');
            await page.key('ArrowDown');
            await page.key('Enter');
            await page.run('document.activeElement.blur()');
            check(await page.run(shaded) > 0, 'Enter does not pin a word');
            if (pictures) {
                await page.run('scrollTo(0, 0)');
                fs.writeFileSync(`${pictures}/service-${width}-${scheme}.png`, await page.picture(false));
            }
            await page.run(`document.querySelectorAll('article:first-child .others button')[1].click()`);
            check(await page.run(`document.querySelectorAll('article:first-child .others button')[1].getAttribute('aria-pressed')`) === 'true', 'no alternative is shown');
            check(await page.run('document.documentElement.scrollWidth <= innerWidth'), 'the page is wider than the window');
            await page.run(`$('theme').click()`);
            check(await page.run('document.documentElement.dataset.theme') !== scheme, 'the theme stays');
            await page.run('localStorage.clear()');
            await page.run(`$('text').value = 'one '.repeat(1000); $('text').dispatchEvent(new Event('input'))`);
            await page.until(`$('state').classList.contains('bad') && /at most/.test($('state').textContent)`);
            await page.run(`$('text').value = '<b>&'; $('text').dispatchEvent(new Event('input'))`);
            await page.until(`document.querySelector('.line.from .word') && document.querySelector('.line.from .word').textContent === '<b>&'`);
            await page.run(`$('text').value = ''; $('text').dispatchEvent(new Event('input'))`);
            await page.until(`document.querySelectorAll('article').length === 0`);
            const unexpected = page.messages.filter(each => !/status of 4/.test(each));
            check(unexpected.length === 0, `the page wrote to the console: ${unexpected}`);
            const foreign = page.requests.filter(each => !each.startsWith(address) && each !== 'about:blank' && !each.startsWith('data:'));
            check(foreign.length === 0, `the page sent external requests: ${foreign}`);
        }
        console.log('passed');
    } finally {
        browser.stop();
    }
})().catch(problem => {
    console.error(`FAILED: ${problem.stack}`);
    process.exit(1);
});
