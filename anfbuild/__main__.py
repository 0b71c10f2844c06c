"""`python -m anfbuild` is `anfbuild`."""

import sys

from anfbuild.cli import main

sys.exit(main())
