"""How do people and programs ask: the command line, the HTTP service and its web page."""
