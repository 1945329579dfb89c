"""Streams of any length that are made from a seed: one class each, and one small contract (`Generator`)."""

from penstock.lab.generators.buses import Buses
from penstock.lab.generators.generator import Generator
from penstock.lab.generators.soccer import Soccer
from penstock.lab.generators.stocks import Stocks
from penstock.lab.generators.synthetic import Synthetic

__all__ = ["Buses", "Generator", "Soccer", "Stocks", "Synthetic"]
