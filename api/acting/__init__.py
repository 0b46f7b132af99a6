"""Acting on a recommendation: setting it, taking it back, watching it, proving what it saves."""
