"""The meter: how many watts this host's drives draw now, and whose joules they are."""
