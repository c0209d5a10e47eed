"""The rendezvous: messages, their codec and the tenant's side. Standard library only."""
