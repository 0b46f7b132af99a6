"""Fitting profiles and the prior from measurements and recipes, and the reports on held-out data.

`selection` picks the measurements, `build` fits a profile, `learn_prior` fits the prior over the
catalogue, `report` and `in_part` score predictions of data that were held out.
"""
