# SPDX-License-Identifier: BSD-3-Clause
"""Whether the sentences of a page agree with its tables."""

import re

from results import Problem
from results.blocks import BLOCK, END, claims_of, filled, table_path
from results.paired import compared

GIVEN = re.compile(r"<!-- given: (.*?) -->", re.S)
COMMENT = re.compile(r"<!--.*?-->", re.S)
NUMBER = re.compile(r"(?<![\w.,/-])[-−+±]?(\d+(?:,\d{3})*(?:\.\d+)?)(?!\w|[.,]\d|/\d)")
COMPARES = re.compile(r"\b(better|best|worse|worst|ahead|behind|beats?|outperforms?|gains?|gained|loses?|lost|helps?|helped|hurts?|higher|"
                      r"highest|lower|lowest|fewer|fewest|more than|less than|the most|(?<!at )least|faster|slower|times as|twice|exceeds?|improves?|told apart|"
                      r"indistinguishable|makes no difference|as good as|as well as)\b", re.I)


def prose(text):
    """(line number, line) of sentences: without code, tables, headings and generated blocks."""
    fenced = generated = False
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*```", line):
            fenced = not fenced
        elif BLOCK.match(line):
            generated = True
        elif line == END:
            generated = False
        elif not (fenced or generated or re.match(r"    |#|\s*\||!\[", line)):
            yield number, line


def plain(line):
    """A line without comments, code, targets of links and the numbers of papers, tables and seeds."""
    line = re.sub(r"`[^`]*`|\]\([^)]*\)", " ", COMMENT.sub(" ", line))
    line = re.sub(r"(?:\bal\.|\b[A-Z]\w+),? \(?(?:19|20)\d\d\b", " ", line)
    return re.sub(r"(?:\b(?:tables?|figures?|sections?|seeds?|equations?|appendix)|§) ?\d+(?:(?:, | and | to )\d+)*", " ", line, flags=re.I)


def numbers_in(text):
    """The numbers of a text, as written, without signs."""
    return [found.group(1) for found in NUMBER.finditer(text)]


def is_in(number, cells):
    """Whether a number is a cell, or a cell rounded to at least one decimal."""
    value, digits = number.replace(",", ""), len(number.partition(".")[2])
    return any(float(value) == cell or (digits and value == f"{cell:.{digits}f}") for cell in cells)


def check(page):
    """The faults of a page, as texts; None if it has no block."""
    text = page.read_text(encoding="utf-8")
    if not any(BLOCK.match(line) for line in text.splitlines()):
        return None
    faults = []
    new, pictures = filled(page, text)
    if new != text:
        faults.append(f"{page}: a generated block differs from its runs; run scripts/results.py write {page}")
    for path, picture in pictures.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != picture:
            faults.append(f"{path}: differs from its runs; run scripts/results.py write {page}")
    tables = {table_path(page, found.group(2)) for line in text.splitlines() if (found := BLOCK.match(line))}
    known = [number for line in text.splitlines() if re.match(r"\s*\|", line) for number in numbers_in(line)]
    known += [number for each in GIVEN.findall(text) for number in numbers_in(each)]
    known += [number for table in tables for number in re.findall(r"(?<=[\s:])\d+(?:\.\d+)?(?=[\s:]|$)", table.read_text(encoding="utf-8"))]
    cells = {float(number.replace(",", "")) for number in known}
    for at, line in prose(text):
        where, sentence = f"{page}:{at}", plain(line)
        for number in numbers_in(sentence):
            if not is_in(number, cells):
                faults.append(f"{where}: {number} is in no table of this page and not given: {sentence.strip()}")
        try:
            claims = list(claims_of(page, line))
            if COMPARES.search(sentence) and not claims and "<!-- not tested: " not in line:
                faults.append(f"{where}: \"{COMPARES.search(sentence).group()}\" compares without a claim: {sentence.strip()}")
            for table, first, relation, second, metric in claims:
                verdict = compared(table, first, second, metric).verdict
                if verdict != relation:
                    faults.append(f"{where}: {first} {relation} {second}, {metric}: the paired test has {first} {verdict} {second} "
                                  f"({', '.join(compared(table, first, second, metric).cells())})")
            if any(claim[2] == "=" for claim in claims) and "not told apart" not in sentence:
                faults.append(f"{where}: a claim \"=\" requires the words \"not told apart\": {sentence.strip()}")
            if claims and all(claim[2] == ">" for claim in claims) and "told apart" in sentence:
                faults.append(f"{where}: \"told apart\" without a claim \"=\": {sentence.strip()}")
        except Problem as problem:
            faults.append(f"{where}: {problem}")
    return faults
