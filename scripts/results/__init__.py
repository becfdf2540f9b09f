# SPDX-License-Identifier: BSD-3-Clause
"""The parts of scripts/results.py: runs, record, paired, chart, blocks, prose."""


class Problem(Exception):
    """A message to the user."""
