// SPDX-License-Identifier: BSD-3-Clause
//
// A headless Chromium, controlled through a pipe with the DevTools protocol; needs only Node's standard library.

'use strict';

const {spawn} = require('child_process');

/// Starts the browser; `profile` is a folder for this browser only.
async function start(program, profile, more = []) {
    // Its sandbox needs privileges that containers do not have; the pages are trusted.
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

    /// A new page: `open(address, how)`, `run(script)`, `until(script, seconds)`, `inside(address)`, `picture()`, `messages`.
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
        const run = async (script, contextId = undefined) => {
            const {result, exceptionDetails} = await tell('Runtime.evaluate',
                {expression: script, awaitPromise: true, returnByValue: true, userGesture: true, contextId});
            if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
            return result.value;
        };
        const moment = time => new Promise(done => setTimeout(done, time));
        const until = async (script, seconds = 20, look = run) => {
            for (const start = Date.now(); Date.now() - start < 1000 * seconds; await moment(50)) {
                const value = await look(script);
                if (value) return value;
            }
            throw new Error(`after ${seconds} s still not: ${script}`);
        };
        return {
            messages, requests, run, tell, until,
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
            /// The page in a frame whose address contains this string: `run` and `until` of its elements, not of its
            /// scripts' names.
            async inside(address) {
                const {frameTree} = await tell('Page.getFrameTree');
                const found = (frameTree.childFrames ?? []).find(each => each.frame.url.includes(address));
                if (!found) throw new Error(`no frame shows ${address}`);
                const {executionContextId} = await tell('Page.createIsolatedWorld', {frameId: found.frame.id});
                const look = script => run(script, executionContextId);
                return {run: look, until: (script, seconds) => until(script, seconds, look), hash: found.frame.urlFragment};
            },
            /// Presses and releases a key.
            async key(name) {
                const codes = {Enter: 13, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40, Tab: 9};
                for (const type of ['keyDown', 'keyUp'])
                    await tell('Input.dispatchKeyEvent', {type, key: name, code: name, windowsVirtualKeyCode: codes[name], text: name === 'Enter' && type === 'keyDown' ? '\r' : undefined});
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
