"""The host under the drive: what it is, what a campaign sets on it, and how that is restored."""
