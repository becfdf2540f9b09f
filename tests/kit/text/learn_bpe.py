#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Byte-pair encoding as Sennrich, Haddow and Birch (2016) define it, not optimized: all pairs are counted
again before each merge. The reference for heed's learner.

usage: learn_bpe.py MERGES FILE... >codes
"""

import collections
import sys


def main():
    merges = int(sys.argv[1])
    occurrences = collections.Counter()
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8", newline="\n") as text:
            for line in text:
                occurrences.update(word for word in line.strip().split(" ") if word)

    spelled = {word: [*word[:-1], word[-1] + "</w>"] for word in occurrences}
    print("#version: 0.2")
    for _ in range(merges):
        pairs = collections.Counter()
        for word, symbols in spelled.items():
            for left, right in zip(symbols, symbols[1:]):
                pairs[left, right] += occurrences[word]
        if not pairs:
            break
        frequency, best = max((count, pair) for pair, count in pairs.items())
        if frequency < 2:
            break
        print(*best)
        for symbols in spelled.values():
            i = 0
            while i + 1 < len(symbols):
                if (symbols[i], symbols[i + 1]) == best:
                    symbols[i : i + 2] = ["".join(best)]
                i += 1


sys.stdout.reconfigure(encoding="utf-8", newline="\n")
main()
