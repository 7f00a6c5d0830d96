"""What a minibatch is trained towards, and how far from it the network is: a loss is one module here, and one call."""
