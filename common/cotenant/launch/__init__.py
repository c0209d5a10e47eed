"""One launch is a state machine; a suite is a sequence of launches; the reaper outlives both."""
