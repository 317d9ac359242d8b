"""`make cases`: id, result and file of every case, as the last test run left them. Exit 1 when a due one is unmet."""

import sys

from tests.case_results import RESULTS, best, due, stored, unmet


def main() -> int:
    """Print the table."""
    if not RESULTS.exists():
        print("no test has run yet; run `make test` first", file=sys.stderr)
        return 1
    results = stored()
    found = best(results)
    for name, is_due in due().items():
        outcome, file = found.get(name, ("missing" if is_due else "open", "-"))
        print(f"{name}  {outcome:<8}{file}")
    missing = unmet(results)
    if missing:
        print(f"due without a passing test: {' '.join(missing)}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
