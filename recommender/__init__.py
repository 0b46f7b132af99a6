"""Which configurations should this workload use?"""
