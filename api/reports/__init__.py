"""Reports: an answer and the question it answers as one HTML file that needs nothing else.

Each kind of answer has a module that turns it into a document; `write_report` writes it, and
`data_of` gives back the answer that the file holds for programs.
"""

from iojoule.api.reports.asked import Asked
from iojoule.api.reports.files import check_target, data_of, write_report

__all__ = ["Asked", "check_target", "data_of", "write_report"]
