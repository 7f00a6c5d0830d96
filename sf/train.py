"""`sf-train`: the command. Imports are inside `main`: every child process imports this module too."""

from __future__ import annotations


def main() -> None:
    """Parse flags, train, and end with 0, 130 or 143 after a signal, 1 after a failure, 2 after a user's mistake."""
    from sf import cli  # noqa: PLC0415

    config = cli.parse()

    from sf.supervisor import ChildError  # noqa: PLC0415  torch is slow to import: not for --help
    from sf.trainer import train  # noqa: PLC0415

    try:
        summary = train(config)
    except ValueError as error:
        cli.fail(str(error))
    except ChildError as error:
        raise SystemExit(f"error: {error}") from None
    cli.report(config, summary)


if __name__ == "__main__":
    main()
