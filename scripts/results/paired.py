# SPDX-License-Identifier: BSD-3-Clause
"""The paired test of two systems, over sentences and seeds."""

import functools
import math
import statistics
from pathlib import Path

from results import Problem
from results.runs import METRICS, RESAMPLES, SCORES, read_runs

LEVEL = 0.05


def beyond(t, freedom):
    """The probability that Student's t is further from 0 than t."""
    if math.isinf(t):
        return 0.0
    # ∫ over [0, t] of the density, by Simpson's rule in the angle: with t = √ν tan θ it is proportional to cos^(ν - 1) θ.
    angle, steps = math.atan(abs(t) / math.sqrt(freedom)), 2000
    density = [math.cos(angle * i / steps) ** (freedom - 1) for i in range(steps + 1)]
    area = (density[0] + density[-1] + 4 * sum(density[1:-1:2]) + 2 * sum(density[2:-1:2])) * angle / steps / 3
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    return min(1.0, max(0.0, 1 - 2 * scale * area))


def quantile(freedom):
    """The t that LEVEL of the values exceed in size."""
    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle, freedom) > LEVEL else (low, middle)
    return low


class Comparison:
    """A against B: means, difference (A - B) with its 95% interval, p."""

    def __init__(self, runs, first, second, metric):
        self.metric, values = metric, [runs.values(system, metric) for system in (first, second)]
        for system, each in zip((first, second), values):
            if len(each) < 2:
                raise Problem(f"{system} has {len(each)} run(s) with {metric}: at least two seeds are required for a comparison")
        self.means = [statistics.fmean(each) for each in values]
        self.difference = self.means[0] - self.means[1]
        parts = [(statistics.variance(each) / len(each), len(each) - 1) for each in values]
        if metric in SCORES:
            differences = [a - b for a, b in zip(runs.resampled(first, metric), runs.resampled(second, metric))]
            parts.append((statistics.variance(differences), RESAMPLES - 1))
        variance = sum(part for part, _ in parts)
        if variance == 0:
            self.p, self.margin = (1.0 if self.difference == 0 else 0.0), 0.0
            return
        freedom = variance ** 2 / sum(part ** 2 / free for part, free in parts)
        self.p = beyond(abs(self.difference) / math.sqrt(variance), freedom)
        self.margin = quantile(freedom) * math.sqrt(variance)

    @property
    def verdict(self):
        """">" if the first is better, "<" if the second is, "=" if they are not told apart."""
        if self.p >= LEVEL:
            return "="
        larger = METRICS[self.metric][2]
        if larger is None:
            raise Problem(f"{self.metric} is neither better nor worse")
        return ">" if (self.difference > 0) == larger else "<"

    def cells(self):
        """The texts of the means, the difference, its interval, and p."""
        digits = METRICS[self.metric][1] or 1
        show = lambda value: f"{value:.{digits}f}".replace("-", "−")
        return [show(self.means[0]), show(self.means[1]), ("+" if self.difference > 0 else "") + show(self.difference),
                f"[{show(self.difference - self.margin)}, {show(self.difference + self.margin)}]",
                self.p_text()]

    def p_text(self, before=""):
        """The text of p, with `before` in front of an equation."""
        return f"{before}{self.p:.3f}" if self.p >= 0.0005 else "< 0.001"


@functools.lru_cache(maxsize=None)
def compared(table: Path, first, second, metric):
    """The comparison, computed once."""
    return Comparison(read_runs(table), first, second, metric)
