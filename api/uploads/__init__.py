"""Measurements that somebody uploads: read where a hostile file can do no harm."""
