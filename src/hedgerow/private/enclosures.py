"""Probabilities to any number of bits, as two integers that certainly enclose them.

Every function here takes `bits` and returns (low, high) with low ≤ probability · 2^bits ≤ high. The integers are
close together, but nothing depends on how close: a caller that cannot decide asks again with more bits.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import TypeAlias

Enclosure: TypeAlias = tuple[int, int]


def normal_tail(threshold: Fraction, bits: int) -> Enclosure:
    """P(|Z| ≥ t) for a standard normal Z and t ≥ 0, which is 1 − √(2/π)·t·G(q) with q = t²/2.

    G(q) = ∫₀¹ e^(−qs²) ds = Σ (−q)ⁿ/(n!·(2n+1)) is summed in fixed point. The rounding of one term of at most 2 units
    grows by at most e^q in the terms after it, so that N terms are off by at most (2N+2)·e^q units; the first term
    that vanishes lies beyond n = q, where the series alternates and falls, so it bounds the rest.
    """
    q = threshold**2 / 2
    if _below_one_unit(q, bits):
        return 0, 1
    growth = math.ceil(q) * 3 // 2 + 1  # e^q ≤ 2^growth
    width = -(-(bits + growth + 32) // 64) * 64  # few different widths, so that the constant below is found again
    fixed_q = (q.numerator << width) // q.denominator
    term = integral = 1 << width
    n = 0
    while term:
        n += 1
        term = (term * fixed_q >> width) // n
        integral += -(term // (2 * n + 1)) if n % 2 else term // (2 * n + 1)
    fixed_threshold = (threshold.numerator << width) // threshold.denominator
    center = (1 << width) - ((fixed_threshold * _root_two_over_pi(width) >> width) * integral >> width)
    error = (math.ceil(threshold) + 1) * (((2 * n + 2) << growth) + 4)
    return _narrowed(center - error, center + error, width - bits)


def exponential(exponent: Fraction, bits: int) -> Enclosure:
    """e^(−x) for x ≥ 0: the alternating series at x/2^h ≤ 1/64, then h squarings of both ends."""
    if _below_one_unit(exponent, bits):
        return 0, 1
    halvings = math.ceil(exponent).bit_length() + 6
    width = bits + halvings + 32
    fixed = ((exponent.numerator << width) // exponent.denominator) >> halvings
    term = total = 1 << width
    n = 0
    while term:
        n += 1
        term = (term * fixed >> width) // n
        total += -term if n % 2 else term
    error = 3 * n + 3  # a term is off by less than 3 units, the argument by one, the rest of the series by less than 3
    low, high = total - error, total + error
    for _ in range(halvings):
        low, high = low * low >> width, (high * high >> width) + 1
    return _narrowed(low, high, width - bits)


def laplace_tail(step: int, rate: Fraction, bits: int) -> Enclosure:
    """P(|K| ≥ step) for step ≥ 1 and the discrete Laplace P(K = k) ∝ r^|k|, r = e^(−rate): 2·r^step/(1+r)."""
    spare = 8
    one = 1 << (bits + spare)
    ratio_low, ratio_high = exponential(rate, bits + spare)
    power_low, power_high = exponential(step * rate, bits + spare)
    low = 2 * power_low * one // (one + ratio_high)
    high = 2 * power_high * one // (one + ratio_low) + 1
    return _narrowed(low, high, spare)


def _narrowed(low: int, high: int, spare: int) -> Enclosure:
    """Drop spare bits outward."""
    return max(0, low >> spare), (high >> spare) + 1


def _below_one_unit(exponent: Fraction, bits: int) -> bool:
    """Whether e^(−exponent) < 2^(−bits) for certain, from log₂ e > 36/25; it bounds the normal tail at q too."""
    return exponent * 36 > bits * 25


@cache
def _root_two_over_pi(width: int) -> int:
    """√(2/π)·2^width, off by less than 2."""
    fine = width + 64
    pi = 16 * _arctangent_of_inverse(5, fine) - 4 * _arctangent_of_inverse(239, fine)  # Machin; off by far below 2^32
    return math.isqrt((1 << (2 * width + fine + 1)) // pi)


def _arctangent_of_inverse(number: int, width: int) -> int:
    """arctan(1/number)·2^width, off by at most two units for each of the fewer than `width` terms."""
    power = total = (1 << width) // number
    n = 0
    while power:
        n += 1
        power //= number * number
        total += -(power // (2 * n + 1)) if n % 2 else power // (2 * n + 1)
    return total
