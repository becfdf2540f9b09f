// SPDX-License-Identifier: BSD-3-Clause
//
// The page of a pretrained translator: model.js contains its parameters, as 16-bit floats.

'use strict';

if (canRun() && typeof heed_captions !== 'object')
    $('without').textContent = 'These pages were built without a model; scripts/browser.sh --train trains one.';
else if (canRun()) heed_module().then(heed => {
    const call = (name, types, values) => {
        const answer = JSON.parse(heed.ccall(name, 'string', types, values));
        if (answer.error) throw new Error(answer.error);
        return answer;
    };
    const model = heed_captions;
    const made = call('heed_captions', ['string', 'number', 'number', 'number', 'string', 'string', 'string', 'string'],
        [model.attention, Number(model.embedding), Number(model.hidden), Number(model.alignment), ...model.texts]);

    // IEEE 754 binary16, by a table of all values.
    const floats = new Float32Array(65536);
    for (let i = 0; i < 65536; ++i) {
        const exponent = i >> 10 & 31, fraction = i & 1023;
        const size = exponent === 0 ? fraction * 2 ** -24 : exponent === 31 ? (fraction ? NaN : Infinity) : (1 + fraction / 1024) * 2 ** (exponent - 15);
        floats[i] = i & 0x8000 ? -size : size;
    }
    const text = atob(model.halves);
    model.halves = null;
    let next = 0;
    for (const [name, size] of model.tensors) {
        const room = heed.ccall('heed_room', 'number', ['string', 'number'], [name, size]);
        if (!room) throw new Error(`model.js has ${size} numbers of "${name}", unlike this translator`);
        for (let i = 0; i < size; ++i, next += 2) heed.HEAPF32[room / 4 + i] = floats[text.charCodeAt(next) | text.charCodeAt(next + 1) << 8];
    }

    const plain = word => word.replace(/&apos;/g, '’').replace(/&quot;/g, '"').replace(/&amp;/g, '&');
    const translate = () => {
        const start = performance.now();
        try {
            const found = call('heed_caption', ['string', 'number'], [$('typed').value, 6]);
            const time = performance.now() - start;
            $('translation').replaceChildren(make('b', {lang: 'de'}, found.words.map(plain).join(' ').replace(/ ([.,!?;:])/g, '$1') || '(nothing)'));
            drawMatrix($('alignment'), {columns: found.source.map(plain), rows: found.words.map(plain), weights: found.weights,
                caption: 'Weights of the English words for each German word'});
            $('status').textContent = `${made.parameters.toLocaleString('en')} parameters; ${time.toFixed(0)} ms for this sentence, beam 6.`;
            document.documentElement.dataset.words = JSON.stringify(found.words);
        } catch (problem) {
            $('translation').replaceChildren(make('span', {class: 'bad'}, problem.message));
        }
    };
    $('samples').append(...['Two men in hard hats stand on a ladder.', 'A girl in a blue dress is playing the violin.',
        'People are walking through a market in the rain.'].map(sample => {
        const button = make('button', {type: 'button', class: 'small'}, sample);
        button.addEventListener('click', () => {
            $('typed').value = sample;
            translate();
        });
        return button;
    }));
    $('ask').addEventListener('submit', event => {
        event.preventDefault();
        translate();
    });
    $('picture').hidden = true;
    $('live').hidden = false;
    translate();
    document.documentElement.dataset.ready = 'yes';
}).catch(problem => {
    $('without').textContent = `heed could not start: ${problem.message ?? problem}`;
});
