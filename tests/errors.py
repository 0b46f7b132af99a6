"""Checks of what an error is about, for `pytest.raises(..., check=...)`."""


class having:  # noqa: N801 - reads as a word: check=having(field="seed")
    """Whether an error has these attributes, such as `field`, `name` or `limit`."""

    def __init__(self, **expected: object) -> None:
        self.expected = expected

    def __call__(self, error: BaseException) -> bool:
        """Whether the error has all of them."""
        return all(getattr(error, name, None) == value for name, value in self.expected.items())

    def __repr__(self) -> str:
        return f"having({', '.join(f'{name}={value!r}' for name, value in self.expected.items())})"
