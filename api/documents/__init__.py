"""Documents of text, tables and drawings that are one file each: model cards and reports."""
