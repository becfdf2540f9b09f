// SPDX-License-Identifier: BSD-3-Clause
//
// The ranking of the site's search: Sphinx's weights, except that a page of docs/mechanisms comes first if its title or an index
// entry equals the search term (100). Its entries are its names in code: search_names.py.

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
