"""What may be expected of a drive before it is measured: a prior learned over the catalogue.

A drive is a point in the logarithms of some two dozen quantities (latencies, rates, watts). The
catalogue's drives scatter around the mean of their group, with a covariance that says what goes
with what; facts of a drive (its power cap, its rated throughput) pull its own point. The numbers
are learned in `model.fitting.prior` and ship as `learned.json`.
"""
