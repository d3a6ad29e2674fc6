from .dask import Dask as Dask
from .engine import Engine as Engine
from .engine import EngineChoice as EngineChoice
from .engine import choose as choose
from .used import EngineUsed as EngineUsed
