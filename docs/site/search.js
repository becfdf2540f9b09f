// SPDX-License-Identifier: BSD-3-Clause
//
// How the site's search weighs what it finds: Sphinx's numbers, but a page of docs/mechanisms whose title or index entry is exactly
// what was searched (100) comes first. Its entries are its names in code: search_names.py.

var Scorer = {
    score: ([page, title, anchor, description, score]) => page.startsWith('docs/mechanisms/') && score === 100 ? 200 : score,
    objNameMatch: 11,
    objPartialMatch: 6,
    objPrio: {0: 15, 1: 5, 2: -5},
    objPrioDefault: 0,
    title: 15,
    partialTitle: 7,
    term: 5,
    partialTerm: 2,
};
