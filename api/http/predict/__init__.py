"""POST /predict: what configurations do that nobody measured."""
