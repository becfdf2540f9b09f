// SPDX-License-Identifier: BSD-3-Clause
//
// The page with the training of a translator: heed runs in a worker, which posts losses and weights; this script draws them.

'use strict';

if (canRun()) (() => {
    // ---- the worker: heed.js as text, since a page from disk may not load a worker file --------------

    const work = () => {
        const ready = heed_module();
        let heed = null, running = false, number = 0, seconds = 0;
        const call = (name, types, values) => JSON.parse(heed.ccall(name, 'string', types, values));
        const safely = run => {
            try {
                run();
            } catch (problem) {
                running = false;
                postMessage({kind: 'problem', error: `heed stopped: ${problem.message ?? problem}`});
            }
        };
        const align = () => postMessage({kind: 'alignment', number, ...call('heed_align', ['number'], [number])});
        const more = () => {
            if (!running) return;
            const start = performance.now(), losses = [];
            let now;
            do {
                now = call('heed_learn', ['number'], [1]);
                losses.push(...now.losses);
            } while (performance.now() - start < 80 && !now.finished);
            seconds += (performance.now() - start) / 1000;
            running = !now.finished;
            align();
            postMessage({kind: 'learnt', losses, updates: now.updates, finished: now.finished, seconds,
                exact: now.finished ? call('heed_exact', ['number'], [200]).exact : null});
            setTimeout(() => safely(more), 0);
        };
        onmessage = async ({data}) => {
            try {
                heed = await ready;
            } catch (problem) {
                postMessage({kind: 'problem', error: `heed could not start: ${problem.message ?? problem}`});
                return;
            }
            safely(() => obey(data));
        };
        const obey = data => {
            if (data.kind === 'new') {
                running = false;
                seconds = 0;
                postMessage({kind: 'new', ...call('heed_new', ['string', 'number'], [data.attention, 1])});
                align();
            } else if (data.kind === 'train') {
                if (!running) {
                    running = true;
                    more();
                }
            } else if (data.kind === 'pause') {
                running = false;
            } else if (data.kind === 'align') {
                number = data.number;
                if (data.now) align();
            } else if (data.kind === 'translate') {
                postMessage({kind: 'translation', ...call('heed_translate', ['string'], [data.text])});
            }
        };
    };
    const text = `'use strict'; const _scriptDir = ''; const heed_module = ${heed_module}; (${work})();`;
    const worker = new Worker(URL.createObjectURL(new Blob([text], {type: 'text/javascript'})));
    const tell = (kind, more = {}) => worker.postMessage({kind, ...more});

    // ---- display -----------------------------------------------------------------------------------------------------

    const sentences = [[724, 'seven hundred twenty four'], [38, 'thirty eight'], [200111, 'two hundred thousand one hundred eleven'],
        [561942, 'five hundred sixty one thousand nine hundred forty two']];
    let losses = [], total = 0, training = false, finished = false;

    const curve = () => {
        const width = Math.max(240, $('curve').clientWidth || 480), height = 0.35 * width + 120, left = 34, bottom = 24, most = 4, all = Math.max(total, 1);
        const x = i => left + (width - left) * i / all, y = loss => 8 + (height - bottom - 8) * (1 - Math.min(loss, most) / most);
        const line = values => values.map((loss, i) => `${i ? 'L' : 'M'}${x(i).toFixed(1)} ${y(loss).toFixed(1)}`).join('');
        let mean = losses[0];
        const means = losses.map(loss => mean += 0.08 * (loss - mean));
        const svg = make('svg', {viewBox: `0 0 ${width} ${height.toFixed(0)}`, role: 'img',
            'aria-label': losses.length ? `Loss after ${losses.length} updates: ${mean.toFixed(3)} nats per word` : 'Loss: not trained yet'});
        for (const tick of [0, 1, 2, 3, 4]) {
            svg.append(make('line', {x1: left, x2: width, y1: y(tick), y2: y(tick)}),
                make('text', {x: left - 8, y: y(tick) + 4, 'text-anchor': 'end'}, String(tick)));
        }
        svg.append(make('text', {x: left, y: height - 4}, 'nats per word'),
            make('text', {x: width, y: height - 4, 'text-anchor': 'end'}, `${total} updates`));
        if (losses.length) svg.append(make('path', {class: 'each', d: line(losses)}), make('path', {d: line(means)}));
        $('curve').replaceChildren(svg);
    };

    const say = text => { $('status').textContent = text; };
    const sayAloud = text => { $('said').textContent = text; };  // not every update
    const buttons = () => {
        $('train').textContent = training ? 'Pause' : losses.length && !finished ? 'Resume' : 'Train';
        $('train').disabled = finished;
        $('again').disabled = !losses.length;
    };
    const matrix = (place, found, caption) => drawMatrix(place,
        {columns: found.source, rows: found.words, weights: found.weights, caption});

    const begin = () => {
        losses = [];
        training = finished = false;
        $('translation').replaceChildren();
        $('translated').replaceChildren();
        delete $('translated').dataset.words;
        tell('align', {number: Number($('sentence').value)});
        tell('new', {attention: $('attention').value});
    };

    worker.onmessage = ({data}) => {
        if (data.error) {
            if (data.kind === 'translation') $('translation').replaceChildren(make('span', {class: 'bad'}, data.error));
            else say($('without').textContent = data.error);
        } else if (data.kind === 'new') {
            $('picture').hidden = true;
            $('live').hidden = false;
            total = data.updates;
            say(`${data.parameters.toLocaleString('en')} random parameters. ${data.pairs.toLocaleString('en')} sentence pairs for training.`);
            curve();
            buttons();
            document.documentElement.dataset.ready = 'yes';
        } else if (data.kind === 'learnt') {
            losses.push(...data.losses);
            finished = data.finished;
            if (finished) training = false;
            const last = losses.slice(-20), mean = last.reduce((sum, loss) => sum + loss, 0) / last.length;
            say(finished ? `Trained in ${data.seconds.toFixed(0)} s: loss ${mean.toFixed(3)}. Of 200 unseen numbers, it translates ` +
                `${Math.round(200 * data.exact)} correctly.`
                : `Update ${data.updates} of ${total}, ${data.seconds.toFixed(0)} s: loss ${mean.toFixed(3)} nats per word.`);
            Object.assign(document.documentElement.dataset, {updates: data.updates, seconds: data.seconds, exact: data.exact ?? ''});
            curve();
            buttons();
            if (finished) {
                sayAloud($('status').textContent);
                translate();
            }
        } else if (data.kind === 'alignment') {
            if (data.number !== Number($('sentence').value)) return;
            const none = !data.weights.length;
            $('no-weights').hidden = !none;
            $('alignment').hidden = none;
            if (!none) matrix($('alignment'), data, 'Weights of the English words for each German word');
        } else if (data.kind === 'translation') {
            const words = data.words.slice(0, -1);
            $('translation').replaceChildren(make('b', {lang: 'de'}, words.join(' ') || '(nothing)'));
            if (data.unknown.length) {
                $('translation').append(make('span', {class: 'soft'},
                    ` – unknown words: ${data.unknown.map(word => `“${word}”`).join(', ')}`));
            } else if (!losses.length) {
                $('translation').append(make('span', {class: 'soft'}, ' – not trained yet'));
            }
            if (data.weights.length) matrix($('translated'), data, 'Weights of the English words for each word of the translation');
            else $('translated').replaceChildren();
        }
    };
    worker.onerror = event => say($('without').textContent = `heed could not start: ${event.message}`);

    const translate = () => tell('translate', {text: $('typed').value});
    $('sentence').append(...sentences.map(([number, words]) => make('option', {value: number}, words)));
    $('sentence').addEventListener('change', () => tell('align', {number: Number($('sentence').value), now: true}));
    $('attention').addEventListener('change', begin);
    $('again').addEventListener('click', begin);
    $('train').addEventListener('click', () => {
        training = !training;
        tell(training ? 'train' : 'pause');
        buttons();
        if (training && !losses.length) say('Learning …');
        sayAloud(training ? 'Learning' : `Paused. ${$('status').textContent}`);
    });
    $('ask').addEventListener('submit', event => {
        event.preventDefault();
        translate();
    });
    addEventListener('resize', curve);
    begin();
})();
