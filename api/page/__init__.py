"""The web page: TypeScript in src/, bundled into built/ by scripts/build_page.sh."""
