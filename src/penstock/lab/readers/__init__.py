"""Recorded streams, as tables like those of the generators: one reader per format."""

from penstock.lab.readers.bike_trips import read_bike_trips
from penstock.lab.readers.cards import read_card_transactions
from penstock.lab.readers.cluster_tasks import read_dlrm_instances, read_gpu_pods
from penstock.lab.readers.debs2013 import read_debs2013
from penstock.lab.readers.dublin_buses import read_dublin_buses
from penstock.lab.readers.eoddata import read_eoddata
from penstock.lab.readers.files import DataError, recorded
from penstock.lab.readers.fires import read_fires
from penstock.lab.readers.minute_bars import read_minute_bars
from penstock.lab.readers.soccer_match import read_soccer_match
from penstock.lab.readers.toronto_buses import read_toronto_buses

__all__ = [
    "DataError", "read_bike_trips", "read_card_transactions", "read_debs2013", "read_dlrm_instances",
    "read_dublin_buses", "read_eoddata", "read_fires", "read_gpu_pods", "read_minute_bars", "read_soccer_match",
    "read_toronto_buses", "recorded",
]  # fmt: skip
