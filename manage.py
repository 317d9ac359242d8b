#!/usr/bin/env python
"""Entry of every management command."""

import os
import sys

if __name__ == "__main__":
    if sys.argv[1:2] == ["mcp_stdio"]:
        # The bridge must answer within half a second: it never loads Django.
        from mcp.stdio import main

        sys.exit(main(sys.argv[2:]))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "duduclaw.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
