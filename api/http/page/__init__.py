"""GET /ui/: the page, served from files that ship with the package."""
