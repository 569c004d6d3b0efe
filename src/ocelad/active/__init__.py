"""Which pair to ask about next, so that an answer teaches more than that about a random pair."""

from .groups import GroupQuestions
from .queries import Queries
from .strategies import Strategy, at_random, committee, uncertainty, vote_entropy

__all__ = ["GroupQuestions", "Queries", "Strategy", "at_random", "committee", "uncertainty", "vote_entropy"]
