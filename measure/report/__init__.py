"""Reports on finished campaigns: one module per report."""
