"""Learning the prior over the catalogue, and judging it on drives that were left out."""
