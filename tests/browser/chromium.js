// SPDX-License-Identifier: BSD-3-Clause
//
// A headless Chromium, driven through a pipe by the DevTools protocol: no library is needed but Node's own.

'use strict';

const {spawn} = require('child_process');

/// Starts the browser; `profile` is a folder of its own.
async function start(program, profile, more = []) {
    // Its sandbox needs privileges that containers do not have; the pages are our own.
    const browser = spawn(program, ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run',
        '--disable-background-networking', `--user-data-dir=${profile}`, '--remote-debugging-pipe', ...more, 'about:blank'],
    {stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'], env: {...process.env, HOME: profile}});
    const [, , , to, from] = browser.stdio;
    const waiting = new Map(), listeners = new Set();
    let number = 0, rest = '';
    from.setEncoding('utf8');
    from.on('data', text => {
        const messages = (rest + text).split('\0');
        rest = messages.pop();
        for (const message of messages.map(each => JSON.parse(each))) {
            if (message.id) {
                const {done, fail} = waiting.get(message.id);
                waiting.delete(message.id);
                message.error ? fail(new Error(message.error.message)) : done(message.result);
            } else {
                for (const listener of listeners) listener(message);
            }
        }
    });
    const ended = new Promise((_, fail) => browser.on('exit', code => fail(new Error(`${program} ended with ${code}`))));
    ended.catch(() => {});
    const send = (method, params = {}, sessionId = undefined) => Promise.race([ended, new Promise((done, fail) => {
        waiting.set(++number, {done, fail});
        to.write(JSON.stringify({id: number, method, params, sessionId}) + '\0');
    })]);

    /// A new page: `open(address, width, height)`, `run(script)`, `until(script, seconds)`, `picture()`, `messages`.
    async function page() {
        const {targetId} = await send('Target.createTarget', {url: 'about:blank'});
        const {sessionId} = await send('Target.attachToTarget', {targetId, flatten: true});
        const tell = (method, params) => send(method, params, sessionId);
        const messages = [], requests = [], loads = [];
        listeners.add(({method, params, sessionId: of}) => {
            if (of !== sessionId) return;
            if (method === 'Runtime.exceptionThrown')
                messages.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
            if (method === 'Runtime.consoleAPICalled') messages.push(params.args.map(each => each.value ?? each.description).join(' '));
            if (method === 'Network.requestWillBeSent') requests.push(params.request.url.slice(0, 200));
            if (method === 'Page.loadEventFired') loads.splice(0).forEach(done => done());
        });
        for (const domain of ['Page', 'Runtime', 'Network']) await tell(`${domain}.enable`);
        const run = async script => {
            const {result, exceptionDetails} = await tell('Runtime.evaluate',
                {expression: script, awaitPromise: true, returnByValue: true, userGesture: true});
            if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
            return result.value;
        };
        const moment = time => new Promise(done => setTimeout(done, time));
        return {
            messages, requests, run, tell,
            async open(address, {width = 1280, height = 900, scheme = 'light', phone = false} = {}) {
                await tell('Emulation.setDeviceMetricsOverride', {width, height, deviceScaleFactor: 1, mobile: phone});
                await tell('Emulation.setTouchEmulationEnabled', {enabled: phone});
                await tell('Emulation.setEmulatedMedia', {features: [{name: 'prefers-color-scheme', value: scheme}]});
                const loaded = new Promise(done => loads.push(done));
                await tell('Page.navigate', {url: 'about:blank'});
                await loaded;
                const there = new Promise(done => loads.push(done));
                await tell('Page.navigate', {url: address});
                await there;
            },
            async until(script, seconds = 20) {
                for (const start = Date.now(); Date.now() - start < 1000 * seconds; await moment(50)) {
                    const value = await run(script);
                    if (value) return value;
                }
                throw new Error(`after ${seconds} s still not: ${script}`);
            },
            async picture(whole = true) {
                const {data} = await tell('Page.captureScreenshot', {captureBeyondViewport: whole});
                return Buffer.from(data, 'base64');
            },
        };
    }
    return {page, stop: () => browser.kill('SIGKILL')};
}

module.exports = {start};
