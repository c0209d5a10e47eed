"""What a benchmark imports: the contract, the loop, devices, precision, input."""
