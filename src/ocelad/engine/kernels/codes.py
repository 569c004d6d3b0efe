"""What the numbers in a stack's arrays mean, for both sides of the compiled call. Needs no compiler."""

# kinds of margin loss
HINGE, SQUARED_HINGE, LOGISTIC = range(3)

# combiners
FIXED_SHARE, OCELAD_MEAN, OCELAD_MIXTURE, SAOL, LEADING_HISTORY = range(5)

# from where a level opens: from the one below, level 0 from the origin or from itself (RICE); all from the origin;
# so too, but each at times of its own (follow the leading history)
FRESH, CONTINUES, RESTARTS, BIRTHS = range(4)

# geometries in which learners move; the last is that of the sum of all gradients (`kernels.mirror`)
FROBENIUS, VON_NEUMANN, LOG_DET, LEADER = range(4)

# entries of ``options``
STEP, STRENGTH, THRESHOLD_STEP, CAPPED, BASE, START, LOSS, N, MAX_RANK, GEOMETRY, ADAPTS = range(11)
RULE, RATE, SHARE, RESET, BOUND, OPTIONS = range(11, 17)

# rows of ``meta``: what is counted once (see next); the slot of each level; the rank of each slot, the number of
# columns of its own that its dictionary has (or of terms not diagonalised yet), the first recent comparison that
# the dictionary has too, and its features
CLOCK, ORDER, RANK, COUNT, SINCE, TOUCHED, META = range(7)

# the first entries of ``meta[CLOCK]``: steps taken, levels, recent comparisons kept, and their features; the seed
TIME, LEVELS, RECENT, SEEN, SEED = range(5)

# rows of ``features``: those that are in a dictionary, one after the other; whether each is
LIST, MARK = range(2)

# columns of ``scalars``: what an identity start has left; the threshold; what was cut off to stay within max_rank;
# the work that compressing the dictionary would have saved
SIGMA, MU, DISCARDED, DEBT, SCALARS = range(5)

# rows of ``vec``, scratch for floats
DIFFERENCE, RECENTLY, RESIDUAL, COORDINATES, SECOND, POLE, WEIGHT, SQUARE, NEAREST, OFFSET = range(10)
ZHAT, CHANCE, VECTORS = range(10, 13)

# rows of ``index``, scratch for integers
EVERY, NONZERO, SOURCE, TARGET, SOME, LANE, INDICES = range(7)

# entries of ``where``: the addresses of the arrays, then their sizes
AT_E, AT_F, AT_S, AT_SCALARS, AT_META, AT_LOSSES, AT_STATE, AT_OPTIONS, AT_FEATURES, AT_U, AT_L, AT_A = range(12)
AT_VEC, AT_Z, AT_G, AT_LANE, AT_V, AT_COPIES, AT_INDEX, AT_WORK = range(12, 20)
SLOTS, ROWS, ROOM, HEIGHT, PANELS, LONG, TERMS = range(20, 27)

# columns of ``state``, by level: what the weights keep; the length that its step is divided by the root of (where
# steps adapt, the sum of squared gradients instead); how much it diffuses; the sum of its slopes
LOG_WEIGHT, SPAN, ENDLESS, DRAWN, LENGTH, DIFFUSION, SLOPES, FIELDS = range(8)

# roots of the secular equation advance in groups of WIDTH lanes; so many numbers describe a group
WIDTH = 128
STRIDE = WIDTH + 8  # no two rows of lanes a multiple of 4096 bytes apart, which caches would confuse
LANE_ROWS = 12
LANES = LANE_ROWS * STRIDE

# rows are turned five at a time: copies of these, and one of what is to be put into another order
COPIES = 6

# so many recent comparisons are kept for all dictionaries
RING = 64

# so many terms may wait for being diagonalised, where the rank is so high at least; each takes two at most
LATE, FULL = 48, 64
