"""The Hessian of the training loss: its largest eigenvalues, and the density of all of them."""
