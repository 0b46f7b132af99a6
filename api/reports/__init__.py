"""Texts, tables, plots and documents for people: reports, model cards, and what they share."""
