"""The families of networks, each a module that declares itself."""
