"""POST /simulations: what a drive would do; GET: which drives come with iojoule."""
