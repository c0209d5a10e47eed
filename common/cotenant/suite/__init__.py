"""Job files become cells. Pure: no torch, no launch, no look at the machine."""
