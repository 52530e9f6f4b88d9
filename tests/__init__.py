"""The tests mirror src; helpers that tests import (a clock, a bounded asyncio run) stand beside this file."""
