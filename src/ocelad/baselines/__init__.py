"""What the tracker is compared with: the same loop with other parts, batch methods, and doing nothing at all."""

from .adaptive_steps import AdaptiveSteps, adagrad
from .batch import ITML, LDA, LMNN, MMC, NCA, PCA
from .dynamics import Candidates, Diffusion, dynamic_mirror_descent
from .euclid import Euclid
from .fixed_rate import FixedRate, FixedRates, comid, fixed_share, mdml
from .leader import Leader, ftrl
from .leading_history import ComidHistories, Histories, LeadingHistory, leading_history
from .online_itml import Itml, OnlineItml, online_itml
from .oracle import Oracle
from .restarted import RestartedComid, UnclippedSaol, restarted, saol
from .streaming import STREAMING, Tracker
from .windowed import Windowed

__all__ = [
    "ITML",
    "LDA",
    "LMNN",
    "MMC",
    "NCA",
    "PCA",
    "STREAMING",
    "AdaptiveSteps",
    "Candidates",
    "ComidHistories",
    "Diffusion",
    "Euclid",
    "FixedRate",
    "FixedRates",
    "Histories",
    "Itml",
    "Leader",
    "LeadingHistory",
    "OnlineItml",
    "Oracle",
    "RestartedComid",
    "Tracker",
    "UnclippedSaol",
    "Windowed",
    "adagrad",
    "comid",
    "dynamic_mirror_descent",
    "fixed_share",
    "ftrl",
    "leading_history",
    "mdml",
    "online_itml",
    "restarted",
    "saol",
]
