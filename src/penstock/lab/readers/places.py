"""Places on a map as metres, good enough within a city."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DEGREE_M = 111_320  # a degree of latitude


def metres(lon: Floats, lat: Floats, latitude: float) -> tuple[Floats, Floats]:
    """Return places as metres east of the meridian and north of the equator.

    Args:
        lon: degrees.
        lat: degrees.
        latitude: of the city: there a degree of longitude is as much shorter.
    """
    return lon * DEGREE_M * np.cos(np.radians(latitude)), lat * DEGREE_M
