// SPDX-License-Identifier: BSD-3-Clause
//
// The playground within another page:
//
//     <figure class="heed-play" data-product="additive+temporal+weighted_sum"><img src="temporal.svg" alt="…"></figure>
//     <figure class="heed-play" data-page="temporal"><img src="temporal.svg" alt="…"></figure>
//     <script src="…/embed.js" defer></script>
//
// The second shows the product of that page of docs/mechanisms. A button appears below the figure; when it is pressed, the
// playground replaces it. data-live="index.html" shows another one of these pages and also replaces the picture. Without
// scripts or WebAssembly, the figure is unchanged. If the body has a data-theme, the page follows it.

'use strict';

{
    const base = new URL('.', document.currentScript.src);
    const play = figure => {
        const {product, page, live} = figure.dataset;
        const of = query => `${new URL(live ?? 'playground.html', base)}${query}${live ? '' : `#${page ? `page=${page}` : product}`}`;
        const theme = () => document.body.dataset.theme ?? 'auto';
        const button = document.createElement('button');
        button.type = 'button';
        button.textContent = live ? 'Start' : 'Try it: move words, change numbers';
        button.addEventListener('click', () => {
            const frame = document.createElement('iframe'), link = document.createElement('a');
            frame.src = of(`?embed&theme=${theme()}`);
            frame.title = live ? document.title : `Playground: ${page ?? product.split('+').join(', ')}`;
            frame.style.cssText = 'width: 100%; border: 0; height: 60rem; display: block';
            link.href = of('');
            link.textContent = live ? 'Open in a separate page' : 'Open the playground in a separate page';
            addEventListener('message', event => {
                if (event.source === frame.contentWindow && event.data?.heed === 'height') frame.style.height = `${event.data.height}px`;
            });
            new MutationObserver(() => frame.contentWindow.postMessage({heed: 'theme', theme: theme()}, '*'))
                .observe(document.body, {attributeFilter: ['data-theme']});
            if (live) figure.replaceChildren(frame, link);
            else button.replaceWith(frame, link);  // the text may refer to the picture
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
