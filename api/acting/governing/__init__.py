"""Keeps drives within their SLA and a budget of watts while the load changes."""
