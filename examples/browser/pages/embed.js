// SPDX-License-Identifier: BSD-3-Clause
//
// The playground within another page:
//
//     <figure class="heed-play" data-product="additive+temporal+weighted_sum"><img src="temporal.svg" alt="…"></figure>
//     <script src="…/embed.js" defer></script>
//
// A button appears below what is there; only when it is pressed, the playground comes in its place. Without scripts or
// WebAssembly, what is there stays.

'use strict';

{
    const base = new URL('.', document.currentScript.src);
    const play = figure => {
        const button = document.createElement('button');
        button.type = 'button';
        button.textContent = 'Try it: move words, change numbers';
        button.addEventListener('click', () => {
            const frame = document.createElement('iframe');
            frame.src = `${new URL('playground.html', base)}?embed#${figure.dataset.product}`;
            frame.title = `Playground: ${figure.dataset.product.split('+').join(', ')}`;
            frame.style.cssText = 'width: 100%; border: 0; height: 60rem; display: block';
            addEventListener('message', event => {
                if (event.source === frame.contentWindow && event.data?.heed === 'height') frame.style.height = `${event.data.height}px`;
            });
            figure.replaceChildren(frame);
            frame.focus();
        });
        figure.append(button);
    };
    const start = () => {
        if (typeof WebAssembly === 'object') document.querySelectorAll('.heed-play').forEach(play);
    };
    if (document.readyState === 'loading') addEventListener('DOMContentLoaded', start);
    else start();
}
