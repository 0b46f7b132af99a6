"""Block traces of the world: read as a stream of batches, whatever wrote them.

`formats` holds the formats, `stream` opens and decodes files, `read` picks volumes,
merges, scales and samples, `volumes` says what each volume does, `day` draws a synthetic day.
"""
