"""A second opinion: a reader of its own, held against vitscope on networks that others wrote.

It records the values of a pass, operation by operation, and imports nothing of vitscope. It knows
no kinds of networks, modules or blocks: it says of each sum through which all paths go what the
network returns if one operand stands in its place, and the ratio of this operand to the rest; and
of each softmax its rows and their entropy.

`reading` has the reader, `comparing` holds vitscope against it, `catalog` lists the networks.
"""
