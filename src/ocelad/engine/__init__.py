"""What learns: Algorithm 1 over metric learners, as black boxes or compiled, behind one interface."""

from .box_engine import BoxEngine
from .build import box_engine, rice_engine
from .protocol import Engine, Judgement
from .trace import Trace

__all__ = ["BoxEngine", "Engine", "Judgement", "Trace", "box_engine", "rice_engine"]
