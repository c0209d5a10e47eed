"""What all tests share."""

import signal

from hypothesis import settings

# A property is no benchmark: how long an example takes says nothing on a machine that is busy with others.
settings.register_profile("cotenant", deadline=None)
settings.load_profile("cotenant")

# Under nohup, too, what tests start sees a terminal go.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
