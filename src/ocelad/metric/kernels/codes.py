"""What the numbers in a stack's arrays mean, for both sides of the compiled call. Needs no compiler."""

# kinds of margin loss
HINGE, SQUARED_HINGE, LOGISTIC = range(3)

# combiners
FIXED_SHARE, OCELAD_MEAN, OCELAD_MIXTURE = range(3)

# entries of ``options``
STEP, STRENGTH, THRESHOLD_STEP, CAPPED, BASE, GOES_ON, LOSS, RULE, RATE, SHARE, RESET = range(11)

# rows of ``meta``: steps taken and number of levels; the slot of each level; the rank of each slot
CLOCK, ORDER, RANK = range(3)
