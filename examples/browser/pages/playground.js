// SPDX-License-Identifier: BSD-3-Clause
//
// The playground: passes the choices and positions to heed_ask, and draws the result.

'use strict';

if (canRun()) heed_module().then(heed => {
    const call = (name, types, values) => JSON.parse(heed.ccall(name, 'string', types, values));
    const all = call('heed_catalogue', [], []);
    const kinds = ['score', 'normalizer', 'combiner'];
    const lists = {score: all.scores, normalizer: all.normalizers, combiner: all.combiners};
    const english = ['the', 'cat', 'saw', 'the', 'dog', '.'], german = ['die', 'Katze', 'sah', 'den', 'Hund', '.'];
    const chosen = {score: 0, normalizer: 0, combiner: 0};
    const knobs = {};  // by policy, so that earlier numbers are restored
    const copy = points => points.map(point => [...point]);
    let words = copy(all.words), queries = copy(all.queries), step = 0, answer = null;
    const entry = kind => lists[kind][chosen[kind]];
    const numbersOf = kind => knobs[entry(kind).name] ??= entry(kind).knobs.map(knob => knob.initial);

    // ---- legal products ----------------------------------------------------------------------------------------------

    const faultOf = (score, normalizer, combiner) => call('heed_fault', ['number', 'number', 'number'], [score, normalizer, combiner]);
    const fault = (kind, i) => {
        const place = which => which === kind ? i : chosen[which];
        return kind === 'score' ? '' : faultOf(place('score'), place('normalizer'), place('combiner'));
    };
    /// The score determines compatibility; an incompatible normalizer or combiner is replaced.
    const fit = () => {
        const {score, normalizer, combiner} = chosen;
        const laid = entry('combiner').heads ? '' : entry('combiner').name.match(/^(attentional_|gated_|)/)[1];
        const sum = {position: 'weighted_sum', dimension: 'elementwise_sum', group: 'grouped_sum'}[entry('score').weights];
        const plain = all.combiners.findIndex(each => each.name === laid + sum);
        const found = [[normalizer, combiner], [normalizer, plain], [0, combiner], [0, plain]].find(([n, c]) => !faultOf(score, n, c));
        [chosen.normalizer, chosen.combiner] = found;
    };

    const options = kind => {
        const name = index => lists[kind][index].title;
        $(kind).replaceChildren(...lists[kind].map((each, i) => make('option', {value: each.name, disabled: Boolean(fault(kind, i)),
            selected: i === chosen[kind], title: fault(kind, i) || null}, name(i))));
        $(kind).value = entry(kind).name;
    };
    const about = kind => {
        const place = $(`about-${kind}`), policy = entry(kind), numbers = numbersOf(kind);
        const why = [...new Set(lists[kind].map((_, i) => fault(kind, i)).filter(Boolean))];
        place.replaceChildren(...[make('p', {class: 'equation'}, equation(policy.equation)), ...policy.knobs.map((knob, i) => {
            const out = make('output', {}, String(+numbers[i].toFixed(2)));
            const range = make('input', {type: 'range', min: knob.least, max: knob.most, step: knob.step, value: numbers[i],
                'aria-label': `${policy.title}: ${knob.name}`, 'data-knob': knob.name});
            range.addEventListener('input', () => {
                numbers[i] = Number(range.value);
                out.textContent = String(+numbers[i].toFixed(2));
                ask();
            });
            return make('label', {class: 'knob'}, make('span', {}, equation(knob.name)), out, range);
        }), policy.remembers ? make('p', {class: 'small soft', style: 'margin: .4rem 0 0'}, 'Has memory of earlier steps.') : null,
        why.length ? make('details', {class: 'fault'}, make('summary', {}, 'Why some are unavailable'),
            ...why.map(text => make('p', {}, text.replace(/^heed: /, '')))) : null].filter(Boolean));
    };

    // ---- computing ---------------------------------------------------------------------------------------------------

    const ask = () => {
        const numbers = [...kinds.flatMap(numbersOf), ...words.flat(), ...queries.flat()];
        heed.HEAPF64.set(numbers, heed.ccall('heed_numbers', 'number', [], []) / 8);
        const found = call('heed_ask', kinds.map(() => 'number').concat('number', 'number'),
            [...kinds.map(kind => chosen[kind]), words.length, queries.length]);
        $('problem').hidden = !found.error;
        $('problem').textContent = found.error ?? '';
        if (found.error) return;
        answer = found;
        draw();
    };

    // ---- drawing -----------------------------------------------------------------------------------------------------

    const each = (list, t) => {
        const n = list.length / words.length;
        return list.slice(t * n, t * n + n);
    };
    const mean = (list, t) => {
        const some = each(list, t);
        return some.length === 1 ? some[0] : some.reduce((sum, x) => sum + (x ?? 0), 0) / some.length;
    };
    const text = x => x === null ? '−∞' : (x < 0 ? '−' : '') + Math.abs(x).toFixed(2);
    const of = {1: [''], 2: ['x', 'y'], 4: ['x', '1', 'y', '0']};

    const reach = 2.3, clamp = x => Math.max(-2.1, Math.min(2.1, x));
    const drag = (group, point, name) => {
        const hold = make('circle', {class: 'hit', r: .27});
        group.append(hold);
        group.setAttribute('tabindex', '0');
        group.setAttribute('role', 'button');
        group.dataset.name = name;
        const moved = () => {
            group.setAttribute('aria-label', `${name} at ${point[0].toFixed(1)}, ${point[1].toFixed(1)}; arrow keys move it`);
            ask();
        };
        group.setAttribute('aria-label', `${name} at ${point[0].toFixed(1)}, ${point[1].toFixed(1)}; arrow keys move it`);
        group.addEventListener('keydown', event => {
            const by = {ArrowLeft: [-.1, 0], ArrowRight: [.1, 0], ArrowUp: [0, .1], ArrowDown: [0, -.1]}[event.key];
            if (!by) return;
            event.preventDefault();
            point[0] = clamp(point[0] + by[0]);
            point[1] = clamp(point[1] + by[1]);
            moved();
        });
        group.addEventListener('pointerdown', event => {
            group.setPointerCapture(event.pointerId);
            const follow = now => {
                const box = group.ownerSVGElement.getBoundingClientRect();
                point[0] = clamp((now.clientX - box.left) / box.width * 2 * reach - reach);
                point[1] = clamp(reach - (now.clientY - box.top) / box.height * 2 * reach);
                moved();
            };
            const end = () => {
                group.removeEventListener('pointermove', follow);
                group.removeEventListener('pointerup', end);
                group.removeEventListener('pointercancel', end);
            };
            group.addEventListener('pointermove', follow);
            group.addEventListener('pointerup', end);
            group.addEventListener('pointercancel', end);
        });
    };

    let parts = null;
    /// The elements of the plane, created once, so that focus and dragging are not interrupted.
    const setPlane = () => {
        const svg = make('svg', {viewBox: `${-reach} ${-reach} ${2 * reach} ${2 * reach}`, role: 'group',
            'aria-label': 'A plane with words, the query and the context'});
        svg.append(make('line', {class: 'axis', x1: -reach, x2: reach, y1: 0, y2: 0}), make('line', {class: 'axis', y1: -reach, y2: reach, x1: 0, x2: 0}));
        const rays = words.map(() => make('line', {class: 'ray'}));
        const wordGroups = words.map((point, t) => {
            const group = make('g', {class: 'word'}, make('circle', {class: 'ink', r: 0}), make('circle', {class: 'dot', r: .075}),
                make('text', {x: .15, y: -.12}, english[t]));
            drag(group, point, `word ${t + 1}, ${english[t]},`);
            return group;
        });
        const queryGroups = queries.map((point, s) => {
            const group = make('g', {class: 'query'}, make('path', {d: 'M0 -.13L.13 0L0 .13L-.13 0Z'}),
                make('text', {x: -.16, y: .06, 'text-anchor': 'end'}, german[s]));
            drag(group, point, `query ${s + 1}, ${german[s]},`);
            return group;
        });
        const context = make('g', {class: 'context', 'pointer-events': 'none'}, make('path', {d: 'M-.08 -.08L.08 .08M-.08 .08L.08 -.08'}));
        svg.append(...rays, ...wordGroups, ...queryGroups, context);
        $('plane').replaceChildren(svg);
        parts = {rays, wordGroups, queryGroups, context};
    };

    const draw = () => {
        const weights = answer.weights[step], scores = answer.scores[step], context = answer.contexts[step];
        const at = (element, [x, y]) => element.setAttribute('transform', `translate(${x} ${-y})`);
        const cx = clamp(context[0] ?? 0), cy = clamp(context[2] ?? 0);
        words.forEach((point, t) => {
            const weight = share(mean(weights, t));
            at(parts.wordGroups[t], point);
            parts.wordGroups[t].querySelector('.ink').setAttribute('r', (.22 * Math.sqrt(weight)).toFixed(3));
            for (const [name, value] of [['x1', point[0]], ['y1', -point[1]], ['x2', cx], ['y2', -cy]]) parts.rays[t].setAttribute(name, value);
            parts.rays[t].setAttribute('stroke-width', (.07 * weight).toFixed(4));
        });
        queries.forEach((point, s) => {
            at(parts.queryGroups[s], point);
            parts.queryGroups[s].style.display = s === step ? '' : 'none';
        });
        at(parts.context, [cx, cy]);

        const n = answer.numbers, names = n > 1 && entry('combiner').heads ? ['head 1', 'head 2'] : of[n];
        if ($('bars').dataset.names !== names.join()) {
            $('bars').dataset.names = names.join();
            $('bars').replaceChildren(make('caption', {class: 'unseen'}, n > 1 ? 'Mean scores and weights of this step' : 'Scores and weights of this step'),
                make('thead', {}, make('tr', {}, make('th', {scope: 'col'}, 'word'), make('th', {scope: 'col', class: 'n'}, 'score'),
                    make('th', {scope: 'col', class: 'n'}, 'weight'), make('th', {'aria-hidden': 'true'}, n > 1 ? `of ${names.join(', ')}` : ''))),
                make('tbody', {}, ...words.map((_, t) => make('tr', {}, make('th', {scope: 'row'}, english[t]), make('td', {class: 'n'}),
                    make('td', {class: 'n'}), make('td', {class: n > 1 ? 'bar many' : 'bar', 'aria-hidden': 'true'}, ...names.map(() => make('i')))))));
        }
        $('bars').querySelectorAll('tbody tr').forEach((line, t) => {
            const [score, weight, bar] = line.querySelectorAll('td');
            score.textContent = text(mean(scores, t));
            score.dataset.value = JSON.stringify(each(scores, t));
            weight.textContent = text(mean(weights, t));
            weight.dataset.value = JSON.stringify(each(weights, t));
            bar.classList.toggle('below', mean(weights, t) < 0);
            bar.querySelectorAll('i').forEach((each_, i) => {
                const value = each(weights, t)[i];
                each_.style.setProperty('--w', share(Math.abs(value)));
                each_.title = `${names[i]} ${text(value)}`;
            });
        });
        const laid = !/^(weighted|elementwise|grouped)/.test(entry('combiner').name);
        $('context').textContent = `Context: x ${text(context[0])}, y ${text(context[2])}` +
            (laid ? '.' : n > 1 ? '.' : `; the weights sum to ${text(context[1])}.`);
        $('context').dataset.value = JSON.stringify(context);

        const lines = drawMatrix($('matrix'), {columns: english, rows: german, caption: 'Weights of every step',
            weights: answer.weights.flatMap(list => english.map((_, t) => mean(list, t)))});
        lines.forEach((line, s) => {
            line.classList.toggle('chosen', s === step);
            if (!line.dataset.step) {
                line.dataset.step = s;
                line.addEventListener('click', () => choose(s));
            }
        });
        $('penalties').textContent = answer.penalties.length ? `Penalties: ${answer.penalties.map(([name, x]) => `${name} ${text(x)}`).join(', ')}.` : '';
        document.documentElement.dataset.ready = 'yes';
    };

    const choose = s => {
        step = s;
        $('steps').querySelectorAll('input')[s].checked = true;
        draw();
    };
    const show = () => {
        fit();
        kinds.forEach(kind => {
            options(kind);
            about(kind);
        });
        ask();
        history.replaceState(null, '', `#${kinds.map(kind => entry(kind).name).join('+')}`);
    };

    kinds.forEach(kind => $(kind).addEventListener('change', () => {
        chosen[kind] = lists[kind].findIndex(each => each.name === $(kind).value);
        $('note').hidden = true;  // it describes another product
        show();
    }));
    $('steps').append(...queries.map((_, s) => {
        const input = make('input', {type: 'radio', name: 'step', value: s, checked: s === 0});
        input.addEventListener('change', () => choose(s));
        return make('label', {}, input, german[s]);
    }));
    $('reset').addEventListener('click', () => {
        words.forEach((point, t) => point.splice(0, 2, ...all.words[t]));
        queries.forEach((point, s) => point.splice(0, 2, ...all.queries[s]));
        for (const name of Object.keys(knobs)) delete knobs[name];
        show();
    });
    // playground.html#additive+temporal+weighted_sum; missing parts are unchanged, and incompatible ones are replaced.
    // playground.html#page=temporal: the product of this page of docs/mechanisms.
    const read = () => {
        const page = all.pages.find(each => location.hash === `#page=${each.page}`);
        if (page) {
            kinds.forEach((kind, i) => { chosen[kind] = page.product[i]; });
            $('note').textContent = page.note;
            $('note').hidden = !page.note;
            return;
        }
        decodeURIComponent(location.hash.slice(1)).split('+').forEach((name, i) => {
            const found = i < 3 ? lists[kinds[i]].findIndex(each => each.name === name) : -1;
            if (found >= 0) chosen[kinds[i]] = found;
        });
    };
    addEventListener('hashchange', () => {
        read();
        show();
    });
    $('picture').hidden = true;
    $('live').hidden = false;
    read();
    setPlane();
    show();
}).catch(problem => {
    $('without').textContent = `heed could not start: ${problem.message ?? problem}`;
});
