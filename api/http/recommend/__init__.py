"""POST /recommend: which configurations a workload should use."""
