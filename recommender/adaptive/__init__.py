"""Which configuration to measure next, so that the recommendation gets better soonest?"""
